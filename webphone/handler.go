// Package webphone serves the web phone: a web page that receives alerts without an app. Web Push wakes its service
// worker, which decrypts the sealed alert on the device and shows it. A relay mounts its handler:
//
//	mux.Handle("/phone/", webphone.Handler())
//
// The page looks for the relay's subscriptions and mailboxes at /subscriptions and /mailboxes of its own origin. It
// must be served over https, or on this machine: otherwise browsers do not allow service workers.
//
// The server of the page could send a changed one that reads the alerts. So the owner of the daemons should serve it,
// and a relay only if relay and daemons have one owner.
package webphone

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path"
	"sort"
	"strconv"
	"strings"
)

//go:embed page built
var embedded embed.FS

const prefix = "/phone"

// contentSecurityPolicy lets the page run its own scripts and the program, and speak to relays and daemons: those
// reached over https, and those on this machine.
const contentSecurityPolicy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; " +
	"manifest-src 'self'; worker-src 'self'; connect-src 'self' https: http://127.0.0.1:* http://localhost:*; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the page at /phone/, and a redirect to it at /phone. It takes GET and HEAD, keeps nothing, and is safe
// for concurrent use. Files whose content can change under their name are asked for anew each time; all others have a
// hash of it in their name and are kept for a year.
func Handler() http.Handler {
	files := build()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(self), geolocation=(), microphone=()")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		if req.URL.Path == prefix {
			http.Redirect(w, req, prefix+"/", http.StatusPermanentRedirect)
			return
		}
		f, known := files[strings.TrimPrefix(req.URL.Path, prefix+"/")]
		if !known {
			http.NotFound(w, req)
			return
		}
		f.serve(w, req)
	})
}

// A file is served as it stands in memory.
type file struct {
	content     []byte // nil where only packed is kept
	packed      []byte // with gzip; nil where that gains nothing
	contentType string
	etag        string
	lasting     bool // its name has a hash of the content in it
}

func (f *file) serve(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("ETag", f.etag)
	if f.lasting {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	if f.packed != nil {
		h.Set("Vary", "Accept-Encoding")
	}
	for tag := range strings.SplitSeq(req.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == f.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	content := f.content
	switch {
	case f.packed != nil && takesGzip(req):
		h.Set("Content-Encoding", "gzip")
		content = f.packed
	case content == nil: // a stranger among browsers
		if req.Method == http.MethodHead {
			return
		}
		if r, err := gzip.NewReader(bytes.NewReader(f.packed)); err == nil {
			io.Copy(w, r)
		}
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.Write(content) // to HEAD, the server sends none of it
}

func takesGzip(req *http.Request) bool {
	for _, line := range req.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(strings.TrimSpace(coding), ";")
			if (name == "gzip" || name == "*") && strings.Trim(strings.TrimPrefix(strings.TrimSpace(parameters), "q="), "0.") != "" || name == "gzip" && parameters == "" {
				return true
			}
		}
	}
	return false
}

// build makes the files by the names under which they are served. Each is named after its content, which names others
// in turn; so those come first.
func build() map[string]*file {
	files := make(map[string]*file)
	names := make(map[string]string) // as the sources call them, to those that are served
	add := func(name string, f *file) {
		sum := sha256.Sum256(append(bytes.Clone(f.content), f.packed...))
		hash := hex.EncodeToString(sum[:8])
		f.etag = `"` + hash + `"`
		served := name
		if f.lasting {
			ext := path.Ext(name)
			served = strings.TrimSuffix(name, ext) + "." + hash + ext
		}
		files[served] = f
		names[name] = served
	}

	program := read("built/phone.wasm.gz")
	add("phone.wasm", &file{packed: program, contentType: "application/wasm", lasting: true})
	for _, name := range []string{"icon-192.png", "icon-512.png", "badge-96.png"} {
		add(name, &file{content: read("page/" + name), contentType: "image/png", lasting: true})
	}
	const script = "text/javascript; charset=utf-8"
	add("wasm_exec.js", text(string(read("built/wasm_exec.js")), script, true))
	for _, f := range []struct {
		name, contentType string
	}{
		{"icon.svg", "image/svg+xml"}, {"style.css", "text/css; charset=utf-8"}, {"text.js", script}, {"store.js", script},
		{"core.js", script}, {"relay.js", script}, {"link.js", script}, {"page.js", script},
	} {
		add(f.name, text(fill(f.name, names, nil), f.contentType, true))
	}
	add("manifest.webmanifest", text(fill("manifest.webmanifest", names, nil), "application/manifest+json", false))
	// The page is served at the directory itself, and the worker keeps it: so the worker's version tells of it, too.
	page := text(fill("index.html", names, nil), "text/html; charset=utf-8", false)
	add("", page)
	var all []string
	for served, f := range files {
		if f.lasting {
			all = append(all, served)
		}
	}
	sort.Strings(all)
	sum := sha256.Sum256([]byte(page.etag + strings.Join(all, "\n")))
	add("worker.js", text(fill("worker.js", names, map[string]string{
		"all": strings.Join(all, `", "`), "version": hex.EncodeToString(sum[:8]),
	}), script, false))
	return files
}

func text(content, contentType string, lasting bool) *file {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("webphone: " + err.Error()) // unreachable: a buffer takes everything
	}
	return &file{content: []byte(content), packed: packed.Bytes(), contentType: contentType, lasting: lasting}
}

func read(name string) []byte {
	content, err := embedded.ReadFile(name)
	if err != nil {
		panic("webphone: " + err.Error()) // unreachable: it is embedded
	}
	return content
}

// fill puts the names of served files where a source of the page has {{name}}.
func fill(name string, names, more map[string]string) string {
	content := string(read("page/" + name))
	for _, values := range []map[string]string{names, more} {
		for key, value := range values {
			content = strings.ReplaceAll(content, "{{"+key+"}}", value)
		}
	}
	if _, rest, found := strings.Cut(content, "{{"); found {
		missing, _, _ := strings.Cut(rest, "}}")
		panic(fmt.Sprintf("webphone: %s names %q, which is not served", name, missing)) // unreachable: a test builds them all
	}
	return content
}
