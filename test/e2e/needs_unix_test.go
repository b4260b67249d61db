//go:build unix

package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// installing is held while a folder is filled: who waits for it may want the
// same one.
var installing sync.Mutex

// cached returns a folder of the user's cache folder that has been filled
// once for this kind and identity, which say all that decides what is in it.
// The path at which it is filled is not the one that is returned.
func cached(t *testing.T, kind string, identity []byte, fill func(dir string)) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir() // no home: a service's user
	}
	base = filepath.Join(base, "wireguardrun-test")
	done := filepath.Join(base, fmt.Sprintf("%s-%x", kind, sha256.Sum256(identity))[:24])
	if _, err := os.Stat(done); err == nil {
		return done
	}

	// The folder gets its name when it is complete, so that an interrupted
	// install is never taken for one, and of two at once one wins.
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(base, kind+"-new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	fill(work)
	if err := os.Rename(work, done); err != nil {
		if _, statErr := os.Stat(done); statErr != nil {
			t.Fatal(err)
		}
	}
	return done
}
