package stray

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func newFile(t *testing.T, path string, max int64, o Options) *File {
	t.Helper()
	s, err := NewFile(path, max, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeSink(t *testing.T, s Sink) {
	t.Helper()
	if !s.Close(soon(t)) {
		t.Error("not flushed")
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func TestFileAppends(t *testing.T) {
	path := filepath.Join(tempDir(t), "stray.log")
	for _, word := range []string{"one", "two"} {
		s := newFile(t, path, 0, Options{})
		s.Put("stdout", []byte(word+"\n"))
		if !s.Flush(soon(t)) {
			t.Error("not flushed")
		}
		if got := content(t, path); !strings.HasSuffix(got, word+"\n") {
			t.Errorf("the flushed file holds %q", got)
		}
		closeSink(t, s)
	}
	if got := content(t, path); got != "one\ntwo\n" {
		t.Errorf("file holds %q", got)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && st.Mode() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
}

func TestFileRotates(t *testing.T) {
	long := strings.Repeat("x", 25)
	tests := []struct {
		name        string
		before      string
		puts        []string
		path, path1 string
	}{
		{"fits", "", []string{"123456789\n"}, "123456789\n", ""},
		{"one more byte", "", []string{"123456789\n", "a"}, "a", "123456789\n"},
		{"what was there counts", "1234567\n", []string{"a\n", "b\n"}, "b\n", "1234567\na\n"},
		{"larger than allowed already", long, []string{"a\n"}, "a\n", long},
		{"between lines", "", []string{"abc\ndef\nghi\n"}, "ghi\n", "abc\ndef\n"},
		{"one is kept", "", []string{"1......\n", "2......\n", "3......\n"}, "3......\n", "2......\n"},
		{"a long line", "", []string{"a\n" + long}, long[:5], long[:10]},
		{"a long line's end", "", []string{"abc", "defghi", "jk\nl\n"}, "jk\nl\n", "abcdefghi"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(tempDir(t), "f")
			if tt.before != "" {
				if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := newFile(t, path, 10, Options{Failed: func(err error) { t.Error(err) }})
			for _, p := range tt.puts {
				s.Put("stdout", []byte(p))
				if !s.Flush(soon(t)) {
					t.Fatal("not flushed")
				}
			}
			closeSink(t, s)
			if got, got1 := content(t, path), content(t, path+".1"); got != tt.path || got1 != tt.path1 {
				t.Errorf("files hold %q and before it %q, want %q and %q", got, got1, tt.path, tt.path1)
			}
		})
	}
}

// Whatever is written, no file grows beyond the bound, and the two hold the
// end of the stream.
func TestFileBound(t *testing.T) {
	path := filepath.Join(tempDir(t), "f")
	in := numbered(1 << 20)
	const most = 100_000
	s := newFile(t, path, most, Options{})
	for p := in; p != ""; {
		n := min(len(p), 7777)
		s.Pace(n)
		s.Put("stdout", []byte(p[:n]))
		p = p[n:]
	}
	closeSink(t, s)
	got, got1 := content(t, path), content(t, path+".1")
	if len(got) > most || len(got1) > most || len(got1) < most/2 {
		t.Errorf("files have %d and %d bytes", len(got), len(got1))
	}
	if s.Totals().Dropped == 0 && !strings.HasSuffix(in, got1+got) {
		t.Error("the files are not the end of what went in")
	}
}

// Two processes write to one path: the one that finds it rotated already does
// not throw away what the other has just kept.
func TestFileShared(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that another process has open can't be renamed here")
	}
	path := filepath.Join(tempDir(t), "f")
	a, b := newFile(t, path, 10, Options{}), newFile(t, path, 10, Options{})
	put := func(s *File, p string) {
		s.Put("stdout", []byte(p))
		if !s.Flush(soon(t)) {
			t.Fatal("not flushed")
		}
	}
	put(a, "aaaa\n")
	put(b, "bbbb\n")
	put(a, "AA\n") // rotates
	put(b, "BB\n") // finds the new file
	if got, got1 := content(t, path), content(t, path+".1"); got != "AA\nBB\n" || got1 != "aaaa\nbbbb\n" {
		t.Errorf("files hold %q and before it %q", got, got1)
	}
	closeSink(t, a)
	closeSink(t, b)
}

// What is in the way of a rotation is told once; the bytes are counted; when
// it has gone, the writing goes on.
func TestFileRotationFails(t *testing.T) {
	path := filepath.Join(tempDir(t), "f")
	inTheWay := filepath.Join(path+".1", "x")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 10)
	s := newFile(t, path, 10, Options{Failed: func(err error) { told <- err }})
	for range 3 {
		s.Put("stdout", []byte("1234567\n"))
		if !s.Flush(soon(t)) {
			t.Fatal("not flushed")
		}
	}
	if got := s.Totals().Dropped; got != 16 {
		t.Errorf("dropped %d bytes, want 16", got)
	}
	if err := <-told; !strings.Contains(err.Error(), path+".1") {
		t.Errorf("the error does not name what is in the way: %v", err)
	}
	for _, dir := range []string{inTheWay, path + ".1"} {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
	s.Put("stdout", []byte("after\n"))
	closeSink(t, s)
	if got := content(t, path); got != "after\n" || s.Totals().Dropped != 16 || len(told) != 0 {
		t.Errorf("file holds %q, dropped %d, told %d more errors", got, s.Totals().Dropped, len(told))
	}
}

func TestFileDiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	path := filepath.Join(tempDir(t), "f")
	told := make(chan error, 10)
	s := &File{}
	s.start(&rotating{path: path, max: 1000, file: full}, Options{Failed: func(err error) { told <- err }},
		batchSize, func(error) bool { return true })
	for _, p := range []string{"lost\n", "kept\n"} { // the second finds a disk with room
		s.Put("stdout", []byte(p))
		if !s.Flush(soon(t)) {
			t.Fatal("not flushed")
		}
	}
	closeSink(t, s)
	if got := content(t, path); got != "kept\n" || s.Totals().Dropped != 5 || len(told) != 1 {
		t.Errorf("file holds %q, dropped %d, told %d errors", got, s.Totals().Dropped, len(told))
	}
}

func TestFileCannotBeOpened(t *testing.T) {
	dir := tempDir(t)
	for name, path := range map[string]string{
		"directory missing": filepath.Join(dir, "missing", "f"),
		"a directory":       dir,
		"a device":          os.DevNull,
	} {
		if runtime.GOOS == "windows" && path == os.DevNull {
			continue // NUL has a regular file's mode there
		}
		_, err := NewFile(path, 0, Options{})
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want an error that names the path", name, err)
		}
	}
}

// A child's writes of 4 kB on their way to a file, and a plain copy to compare.
func BenchmarkPumpToFile4kB(b *testing.B) {
	b.Run("pump", func(b *testing.B) {
		s, err := NewFile(filepath.Join(b.TempDir(), "f"), 0, Options{})
		if err != nil {
			b.Fatal(err)
		}
		benchmarkPipe(b, func(r *os.File) {
			<-Start("stdout", r, s, nil).done
			s.Close(time.Now().Add(time.Minute))
		})
		t := s.Totals()
		b.ReportMetric(100*float64(t.Dropped)/float64(t.Sources["stdout"].Bytes), "%dropped")
	})
	b.Run("copy", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "f"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		benchmarkPipe(b, func(r *os.File) {
			buf := make([]byte, batchSize)
			for size := 0; ; {
				n, err := r.Read(buf)
				if err != nil {
					return
				}
				if size += n; size > FileMax {
					size = n
					f.Truncate(0)
					f.Seek(0, io.SeekStart)
				}
				f.Write(buf[:n])
			}
		})
	})
}

func benchmarkPipe(b *testing.B, reader func(*os.File)) {
	chunk := bytes.Repeat([]byte("a line of sixty-four bytes, as a server that prints may write.\n"), 64)
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	done := make(chan struct{})
	go func() { defer close(done); reader(r) }()
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		if _, err := w.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
	w.Close()
	<-done
}
