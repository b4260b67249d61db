package stray

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// FileMax is how large a file may grow when no other bound is given, in bytes.
const FileMax = 64 << 20

// File is the sink that appends to a file of bounded size.
type File struct{ stream }

// NewFile opens path for appending, with mode 0600 if it is new. When a write
// would make it larger than max bytes (FileMax when max is not positive), it
// is renamed to path.1, replacing that, and a new file is begun, with a whole
// line if the lines are shorter than max. Several processes may share a path,
// except on Windows, where no open file can be renamed.
//
// After a write or a rotation that fails the next bytes are tried again; what
// could not be written is dropped, and o.Failed is told once.
func NewFile(path string, max int64, o Options) (*File, error) {
	if max <= 0 {
		max = FileMax
	}
	// The file itself is what rotates, not a link to it such as /dev/stderr.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	w := &rotating{path: path, max: max}
	if err := w.open(); err != nil {
		return nil, err
	}
	s := &File{}
	s.start(w, o, fileBatch, func(error) bool { return true })
	return s, nil
}

// rotating writes to a file of bounded size.
type rotating struct {
	path string
	max  int64
	file *os.File // nil after a failure: the next write opens anew
}

func (r *rotating) open() error {
	// Anything else would block, or would be renamed away, a device even.
	st, err := os.Stat(r.path)
	if err == nil && !st.Mode().IsRegular() {
		return &fs.PathError{Op: "open", Path: r.path, Err: errNotRegular}
	}
	r.file, err = os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	return err
}

var errNotRegular = errors.New("not a regular file")

func (r *rotating) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if r.file == nil {
			if err := r.open(); err != nil {
				return n, err
			}
		}
		// Asked each time: others append to the file, and truncate it.
		st, err := r.file.Stat()
		if err != nil {
			return n, r.drop(err)
		}
		part := r.fit(p[n:], st.Size())
		if part == 0 {
			if err := r.rotate(st); err != nil {
				return n, err
			}
			continue
		}
		m, err := r.file.Write(p[n : n+part])
		n += m
		if err != nil {
			return n, r.drop(err)
		}
	}
	return n, nil
}

// fit says how much of p goes into a file of that size, 0 for rotate first.
func (r *rotating) fit(p []byte, size int64) int {
	room := r.max - size
	if int64(len(p)) <= room {
		return len(p)
	}
	if room > 0 {
		if end := bytes.LastIndexByte(p[:room], '\n'); end >= 0 {
			return end + 1
		}
	}
	if size > 0 {
		return 0
	}
	return int(room)
}

// rotate starts a new file. opened is the present one.
func (r *rotating) rotate(opened fs.FileInfo) error {
	// Windows renames no open file.
	_ = r.drop(nil)
	// If the path is another file by now, somebody else has rotated ours.
	if st, err := os.Stat(r.path); err == nil && os.SameFile(st, opened) {
		if err := os.Rename(r.path, r.path+".1"); err != nil {
			return err
		}
	}
	return r.open()
}

// drop closes the file, so that the next write opens it anew, and returns err.
func (r *rotating) drop(err error) error {
	_ = r.file.Close()
	r.file = nil
	return err
}

func (r *rotating) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
