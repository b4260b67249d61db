package proc

// events tells of the child's end, the one thing that is told here.
func (p process) events() <-chan Event {
	what := make(chan Event, 1)
	go func() {
		defer close(what)
		if status, err := p.wait(); err == nil {
			what <- Event{Kind: Exited, Status: status}
		}
	}()
	return what
}
