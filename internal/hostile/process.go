package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A process is this program in another role. It ends when its input does.
type process struct {
	command *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Reader
}

func start(role string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.Command(self, role)}
	p.command.Stderr = os.Stderr
	if p.ask, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = bufio.NewReader(out)
	return p, p.command.Start()
}

// read reads a line of JSON that the process wrote.
func (p *process) read(into any) error {
	line, err := p.answers.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the process %q has ended: %w", p.command.Args[1], err)
	}
	return json.Unmarshal(line, into)
}

// end makes the process end, and reads its last line.
func (p *process) end(into any) error {
	p.ask.Close()
	return p.read(into)
}

func (p *process) stop() {
	p.ask.Close()
	p.command.Wait()
}
