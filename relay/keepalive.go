package relay

import (
	"net/http"
	"strconv"
	"time"
)

// announceIdle tells an HTTP/1.1 client for how many whole seconds the server keeps an idle connection (Keep-Alive, RFC
// 2068, section 19.7.1). A client that knows does not post on a connection that is just being closed. A server without
// a limit announces nothing.
func announceIdle(w http.ResponseWriter, r *http.Request) {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok || r.ProtoMajor != 1 || r.Close {
		return
	}
	limit := server.IdleTimeout
	if limit == 0 {
		limit = server.ReadTimeout
	}
	if limit > 0 {
		w.Header().Set("Keep-Alive", "timeout="+strconv.FormatInt(int64(limit/time.Second), 10))
	}
}
