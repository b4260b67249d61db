package handover

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

var records = map[string]struct {
	record Record
	text   string
}{
	"equal numbers": {
		Record{Fds, End{3, 3, "7:a1"}, End{4, 4, "7:a2"}, "5:3", "7:b"},
		"v1;mode=fds;in=3@7:a1;out=4@7:a2;stdin=5:3;stdout=7:b",
	},
	"handles that are other numbers": {
		Record{Auto, End{3, 0x1f4, `pipe:\Win32Pipes.1`}, End{4, 0x1f8, `pipe:\Win32Pipes.2`}, "null:", "disk:1:2"},
		`v1;mode=auto;in=3:1f4@pipe:\Win32Pipes.1;out=4:1f8@pipe:\Win32Pipes.2;stdin=null:;stdout=disk:1:2`,
	},
	"unknown standard descriptors": {
		Record{Fds, End{7, 7, "a@b"}, End{8, 8, "c=d"}, "", ""},
		"v1;mode=fds;in=7@a@b;out=8@c=d;stdin=;stdout=",
	},
}

func TestRoundTrip(t *testing.T) {
	for name, test := range records {
		t.Run(name, func(t *testing.T) {
			if got := test.record.String(); got != test.text {
				t.Errorf("encoded as\n %s, want\n %s", got, test.text)
			}
			got, err := Parse(test.text)
			if err != nil || got != test.record {
				t.Errorf("parsed as\n %+v, %v, want\n %+v", got, err, test.record)
			}
		})
	}
}

func TestParseIgnoresOrderAndUnknownKeys(t *testing.T) {
	want := records["equal numbers"].record
	got, err := Parse("v1;later=x=y;out=4@7:a2;stdout=7:b;in=3@7:a1;stdin=5:3;mode=fds")
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestParseErrors(t *testing.T) {
	const ends = ";in=3@a:1;out=4@a:2"
	for value, says := range map[string]string{
		"":                                                `version "" is not supported, only "v1"`,
		"v2;mode=fds" + ends:                              `version "v2" is not supported`,
		"v1":                                              `mode "" is unknown`,
		"v1;mode=stdio" + ends:                            `mode "stdio" is unknown`,
		"v1;mode" + ends:                                  `field "mode" is not KEY=VALUE`,
		"v1;mode=fds;":                                    `field "" is not KEY=VALUE`,
		"v1;mode=fds;in=3@a:1":                            `out="" is not NUMBER@IDENTITY`,
		"v1;mode=fds;out=4@a:2":                           `in="" is not NUMBER@IDENTITY`,
		"v1;mode=fds;in=3;out=4@a:2":                      `in="3" is not NUMBER@IDENTITY`,
		"v1;mode=fds;in=3@;out=4@a:2":                     `in="3@" is not NUMBER@IDENTITY`,
		"v1;mode=fds;in=x@a;out=4@a:2":                    `in: descriptor number "x"`,
		"v1;mode=fds;in=-3@a;out=4@a:2":                   `in: descriptor number "-3"`,
		"v1;mode=fds;in=3@a;out=@a:2":                     `out: descriptor number ""`,
		"v1;mode=fds;in=2147483648@a;out=4@b":             `in: descriptor number "2147483648"`,
		"v1;mode=fds;in=2@a;out=4@b":                      `in: descriptor number 2 is that of a standard descriptor`,
		"v1;mode=fds;in=3@a;out=0:1f@b":                   `out: descriptor number 0 is that of a standard descriptor`,
		"v1;mode=fds;in=3@a;out=3@a":                      `in and out are one descriptor, 3@a`,
		"v1;mode=fds;in=3:1f4@a;out=4:1f4@a":              `in and out are one descriptor, 3:1f4@a`,
		"v1;mode=fds;in=3:@a;out=4@b":                     `in: handle ""`,
		"v1;mode=fds;in=3:xyz@a;out=4@b":                  `in: handle "xyz"`,
		"v1;mode=fds;in=3:10000000000000000@a;out=4:@b":   `out: handle ""`,
		"v1;mode=fds;in=3:10000000000000000@a;out=4:-1@b": `in: handle "10000000000000000"`,
	} {
		if _, err := Parse(value); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", value, err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, test := range records {
		f.Add(test.text)
	}
	for _, value := range []string{"", "v1", "v1;mode=fds;in=3:3@a;out=04@b", "v1;mode=auto;in=3@;out=@"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r, err := Parse(value)
		if err != nil {
			return
		}
		again, err := Parse(r.String())
		if err != nil || again != r {
			t.Errorf("%q\n is %+v,\n encoded again %q\n is %+v, %v", value, r, r.String(), again, err)
		}
	})
}

func TestEnviron(t *testing.T) {
	test := records["handles that are other numbers"]
	want := []string{EnvIn + "=3", EnvOut + "=4", EnvRecord + "=" + test.text}
	if got := test.record.Environ(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !slices.Equal(Variables, []string{"WIREGUARDRUN_IN", "WIREGUARDRUN_OUT", "WIREGUARDRUN_HANDOVER"}) {
		t.Errorf("the contract's variables are %q", Variables)
	}
}

func TestFromEnvClearRestore(t *testing.T) {
	for _, name := range Variables {
		t.Setenv(name, "") // is put back at the end
	}
	Clear()
	for _, name := range Variables {
		if value, set := os.LookupEnv(name); set {
			t.Errorf("Clear left %s=%q", name, value)
		}
	}
	if r, found, err := FromEnv(); found || err != nil {
		t.Errorf("without a variable: %+v, %t, %v", r, found, err)
	}
	want := records["equal numbers"].record
	want.Restore()
	if r, found, err := FromEnv(); r != want || !found || err != nil {
		t.Errorf("%+v, %t, %v, want %+v", r, found, err, want)
	}
	if in, out := os.Getenv(EnvIn), os.Getenv(EnvOut); in != "3" || out != "4" {
		t.Errorf("the numbers for scripts are %q and %q", in, out)
	}
	t.Setenv(EnvRecord, "v9")
	if _, found, err := FromEnv(); !found || err == nil || !strings.HasPrefix(err.Error(), EnvRecord+": ") {
		t.Errorf("an unreadable record: %t, %v", found, err)
	}
}

// four are a valid pair and the child's standard descriptors.
func four(t *testing.T) (r Record, stdin, stdout pipes.Handle) {
	t.Helper()
	var all [4]pipes.Handle
	var ids [4]pipes.Identity
	for i := range all {
		read, write, err := pipes.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = pipes.Close(read), pipes.Close(write) })
		if ids[i], err = pipes.Identify(read); err != nil {
			t.Fatal(err)
		}
		all[i] = read
	}
	return Record{Fds, End{13, all[0], ids[0]}, End{14, all[1], ids[1]}, ids[2], ids[3]}, all[2], all[3]
}

func TestCheck(t *testing.T) {
	const gone = pipes.Handle(1 << 20)
	good, stdin, stdout := four(t)
	other, _, _ := four(t)
	for _, test := range []struct {
		name           string
		change         func(*Record)
		names          string // the descriptor that the error names
		pair, replaced bool
	}{
		{"all hold", func(*Record) {}, "", true, false},
		{"in is another object", func(r *Record) { r.In.ID = other.In.ID }, "wire in, descriptor 13", false, false},
		{"in is closed", func(r *Record) { r.In.Handle = gone }, "wire in, descriptor 13", false, false},
		{"in is unknown", func(r *Record) { r.In.ID = "" }, "wire in, descriptor 13", false, false},
		{"out is another object", func(r *Record) { r.Out.ID = other.Out.ID }, "wire out, descriptor 14", false, false},
		{"out is closed", func(r *Record) { r.Out.Handle = gone }, "wire out, descriptor 14", false, false},
		{"in and out are exchanged", func(r *Record) { r.In.ID, r.Out.ID = r.Out.ID, r.In.ID }, "wire in, descriptor 13", false, false},
		{"stdin is another object", func(r *Record) { r.Stdin = other.Stdin }, "stdin, descriptor 0", true, false},
		{"stdout is another object", func(r *Record) { r.Stdout = other.Stdout }, "stdout, descriptor 1", true, false},
		{"stdout is unknown", func(r *Record) { r.Stdout = "" }, "stdout, descriptor 1", true, false},
		{"both are others", func(r *Record) { r.Stdin, r.Stdout = other.Stdin, other.Stdout }, "stdin, descriptor 0", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := good
			test.change(&r)
			err := r.Check(stdin, stdout)
			switch {
			case test.names == "":
				if err != nil {
					t.Error(err)
				}
			case !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "("+test.names+")"):
				t.Errorf("%v, want the name %q", err, test.names)
			}
			if got := r.PairHolds(); got != test.pair {
				t.Errorf("the pair holds: %t", got)
			}
			if got := r.StandardReplaced(stdin, stdout); got != test.replaced {
				t.Errorf("the standard descriptors are replaced: %t", got)
			}
		})
	}
}

func TestFromEnvTakesAnEmptyRecordForNone(t *testing.T) {
	t.Setenv(EnvRecord, "")
	if _, ok, err := FromEnv(); ok || err != nil {
		t.Errorf("FromEnv found %t, %v, want none", ok, err)
	}
}
