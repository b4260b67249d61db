package proc

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func TestTableLayout(t *testing.T) {
	entries := []entry{{tableOpen | tablePipe, 0x54}, {0, pipes.None}, {tableOpen | tableDevice, 0x1234}}
	table, err := encodeTable(entries)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{3, 0, 0, 0, 0x09, 0, 0x41}
	for _, h := range []uint64{0x54, ^uint64(0), 0x1234} {
		want = append(want, binary.LittleEndian.AppendUint64(nil, h)[:handleSize]...)
	}
	if !bytes.Equal(table, want) {
		t.Errorf("% x, want % x", table, want)
	}
	if got := decodeTable(table); !slices.Equal(got, entries) {
		t.Errorf("decoded %v, want %v", got, entries)
	}
}

func TestTableSize(t *testing.T) {
	if table, err := encodeTable(nil); table != nil || err != nil {
		t.Errorf("empty: % x, %v", table, err)
	}
	most := (1<<16 - 1 - 4) / (1 + handleSize)
	if table, err := encodeTable(make([]entry, most)); len(table) > 1<<16-1 || err != nil {
		t.Errorf("%d entries: %d bytes, %v", most, len(table), err)
	}
	if _, err := encodeTable(make([]entry, most+1)); err == nil {
		t.Errorf("%d entries fit", most+1)
	}
}

// The table comes from a parent that may be anything.
func FuzzDecodeTable(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte{1, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 0x80, 1})
	f.Fuzz(func(t *testing.T, table []byte) {
		entries := decodeTable(table)
		if entries == nil {
			return
		}
		again, err := encodeTable(entries)
		if err == nil && !bytes.HasPrefix(table, again) {
			t.Errorf("% x became % x", table, again)
		}
	})
}
