package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// answerChecks are about the shape of answers, which the contract leaves open: a daemon looks at the status and logs
// the body.
func answerChecks() []Check {
	return []Check{
		{
			Name: "answer-accepted", Part: SealedRelay, Level: Open, Source: liveProtocol,
			Sentence: `2xx bodies are {"v":1,"outcome":…}: forwarded, coalesced, suppressed, digested; 410 {"v":1,"error":…,"reason":…} for a dead device token.`,
			Does:     "Posts an envelope twice. Wants one of those answers each time, a 2xx being 202, and \"forwarded\" or \"digested\" of the first.",
			run:      answersAcceptance,
		},
		{
			Name: "answer-refused", Part: SealedRelay, Level: Open, Source: strictReading,
			Sentence: `Errors are {"v":1,"error":…}.`,
			Does:     "Posts an object without members. Wants a JSON answer of that shape.",
			run: aboutRefusal(func(r response) error {
				if body := r.decode(); body.V != 1 || body.Error == "" {
					return fmt.Errorf(`want {"v":1,"error":…}; answered %v`, r)
				}
				return nil
			}),
		},
		{
			Name: "answer-names-member", Part: SealedRelay, Level: Open, Source: hostedRelay,
			Sentence: "400 names the field.",
			Does:     "Posts an object without members. Wants an answer that names a member of the envelope, because a daemon logs the answer.",
			run: aboutRefusal(func(r response) error {
				if r.firstMember() == "" {
					return fmt.Errorf("want the name of a member that is missing; answered %v", r)
				}
				return nil
			}),
		},
		{
			Name: "answer-order", Part: SealedRelay, Level: Open, Source: liveProtocol,
			Sentence: "It checks in the order v, device, suite, ciphertext, collapseId, priority, event.",
			Does:     "Posts envelopes in which two members are null that follow each other in that order. Wants an answer that names the first of them.",
			run:      checksInOrder,
		},
		{
			Name: "answer-quotes-no-token", Part: SealedRelay, Level: Open, Source: relayProtocol,
			Sentence: "Logged per device (up to 512 bytes of the response body).",
			Does:     "Posts an envelope with an empty ciphertext. Wants an answer without the device token, because a daemon logs the answer.",
			run: func(ctx context.Context, s *session) error {
				e := newEnvelope().with("ciphertext", "")
				r, err := s.post(ctx, e.encode())
				if err == nil && strings.Contains(strings.ToLower(string(r.body)), e.text("device")) {
					err = fmt.Errorf("answered %d with the device token in the body", r.status)
				}
				return err
			},
		},
		{
			Name: "status-400", Part: SealedRelay, Level: Open, Source: hostedRelay,
			Sentence: "400 names the field.",
			Does:     "Posts an object without members. Wants 400. Open, because the contract asks for any 4xx.",
			run:      aboutRefusal(wantStatus(http.StatusBadRequest)),
		},
		{
			Name: "status-404", Part: SealedRelay, Level: Open, Source: strictReading,
			Sentence: "Envelopes go to the relay's URL alone.",
			Does:     "Posts an envelope to a path below the relay's URL. Wants 404.",
			run: func(ctx context.Context, s *session) error {
				r, err := s.send(ctx, request{method: http.MethodPost, url: s.below("sealpush-conformance"), body: newEnvelope().encode()})
				if err != nil {
					return err
				}
				return wantStatus(http.StatusNotFound)(r)
			},
		},
		{
			Name: "status-405", Part: SealedRelay, Level: Open, Source: strictReading,
			Sentence: "Envelopes are posted.",
			Does:     "Sends an envelope by PUT, PATCH and DELETE. Wants 405 with an Allow header that lists POST (RFC 9110, section 15.5.6). Open: the contract says nothing of other methods.",
			run:      refusesOtherMethods,
		},
		{
			Name: "status-413", Part: SealedRelay, Level: Open, Source: hostedRelay,
			Sentence: "413 for a body over 8192 bytes.",
			Does:     "Posts an envelope that an unknown member makes 8193 bytes long. Wants 413.",
			run: func(ctx context.Context, s *session) error {
				r, err := s.post(ctx, newEnvelope().paddedTo(maxBody+1))
				if err != nil {
					return err
				}
				return wantStatus(http.StatusRequestEntityTooLarge)(r)
			},
		},
	}
}

// An answerBody is what the hosted relay answers with.
type answerBody struct {
	V       int    `json:"v"`
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
	Reason  string `json:"reason"`
}

// decode is zero for a body of another shape.
func (r response) decode() answerBody {
	var body answerBody
	if json.Unmarshal(r.body, &body) != nil {
		return answerBody{}
	}
	return body
}

// words are those of the part of the body that a daemon reads.
func (r response) words() []string {
	text := string(r.body[:min(len(r.body), 512)])
	return strings.FieldsFunc(text, func(c rune) bool { return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') })
}

// firstMember is the first member of an envelope that the error names, or "".
func (r response) firstMember() string {
	words := response{body: []byte(r.decode().Error)}.words()
	i := slices.IndexFunc(words, func(word string) bool { return slices.Contains(memberNames(), word) })
	if i < 0 {
		return ""
	}
	return words[i]
}

func answersAcceptance(ctx context.Context, s *session) error {
	e := newEnvelope()
	for i, outcomes := range [][]string{{forwarded, digested}, outcomes()} {
		r, err := s.post(ctx, e.encode())
		if err != nil {
			return err
		}
		body := r.decode()
		took := r.status == http.StatusAccepted && body == answerBody{V: 1, Outcome: body.Outcome} && slices.Contains(outcomes, body.Outcome)
		dead := r.status == http.StatusGone && body.V == 1 && body.Error != "" && body.Reason != ""
		if !took && !dead {
			return fmt.Errorf("post %d was answered %v", i+1, r)
		}
	}
	return nil
}

func checksInOrder(ctx context.Context, s *session) error {
	names := memberNames()
	for i, name := range names[1:] {
		r, err := s.post(ctx, newEnvelope().with(names[i], nil).with(name, nil).encode())
		if err != nil {
			return err
		}
		if first := r.firstMember(); first != names[i] {
			return fmt.Errorf("%s and %s are null; answered %v", names[i], name, r)
		}
	}
	return nil
}

// aboutRefusal makes a check of the answer to an object without members.
func aboutRefusal(expect func(response) error) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		r, err := s.post(ctx, []byte("{}"))
		if err != nil {
			return err
		}
		return expect(r)
	}
}

func wantStatus(want int) func(response) error {
	return func(r response) error {
		if r.status == want {
			return nil
		}
		return fmt.Errorf("want %d; answered %v", want, r)
	}
}

func refusesOtherMethods(ctx context.Context, s *session) error {
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete} {
		r, err := s.send(ctx, request{method: method, url: s.target.URL, body: newEnvelope().encode()})
		if err == nil {
			err = wantStatus(http.StatusMethodNotAllowed)(r)
		}
		if allow := r.header.Values("Allow"); err == nil && !strings.Contains(strings.Join(allow, ","), http.MethodPost) {
			err = fmt.Errorf("answered 405 with Allow %q; want POST in it", allow)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
	}
	return nil
}
