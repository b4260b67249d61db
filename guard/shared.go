package guard

import "sync/atomic"

// shared is a private handle with one owner and at most one [pipes.Conn] that
// reads or writes it. Whoever leaves last closes it, so that a number is never
// closed under a call that is still using it.
type shared struct {
	h     handle
	close func(handle) error
	users atomic.Int32
}

// newShared takes ownership of h; the caller is the first user.
func newShared(h handle, close func(handle) error) *shared {
	s := &shared{h: h, close: close}
	s.users.Store(1)
	return s
}

func (s *shared) join() { s.users.Add(1) }

// leave may be called on any goroutine. The error is that of the close, if
// this was the last user.
func (s *shared) leave() error {
	if s.users.Add(-1) != 0 {
		return nil
	}
	return s.close(s.h)
}
