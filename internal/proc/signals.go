package proc

import "os"

// ListenForward starts to collect the signals that are passed on to the
// server. Those that were ignored at our start stay ignored, by us and by the
// server (nohup): catching one would give it back its default action there.
func ListenForward() <-chan os.Signal { return listenForward() }

// DieOf ends this process by signal sig, so that whoever waits for it sees
// what became of the child. It returns when that is not possible.
func DieOf(sig int) { dieOf(sig) }
