//go:build linux

package main

import (
	"bytes"
	"strconv"
)

// Messages are JSON-RPC, one on a line, of an exact size. The id has its place
// in a request and in the response to it, so that a server need not parse.
const (
	idAt         = len(`{"jsonrpc":"2.0","id":`)
	idSize       = 8
	firstID      = 10_000_000
	shortMessage = 100 // bytes
)

func request(size int) []byte {
	return message(`{"jsonrpc":"2.0","id":10000000,"method":"echo","params":{"text":"`, size)
}

func response(size int) []byte {
	return message(`{"jsonrpc":"2.0","id":10000000,"result":{"text":"`, size)
}

func notice(size int) []byte {
	return message(`{"jsonrpc":"2.0","method":"data","params":{"text":"`, size)
}

// setID numbers a request.
func setID(request []byte, n int) {
	strconv.AppendInt(request[idAt:idAt], int64(firstID+n), 10)
}

// message fills up with a text that has an escape now and then, as texts in
// JSON have.
func message(head string, size int) []byte {
	const text, tail = `The server said: \"all is well\", and wrote some more text to it. `, "\"}}\n"
	b := []byte(head)
	for len(b)+len(text)+len(tail) <= size {
		b = append(b, text...)
	}
	b = append(b, bytes.Repeat([]byte{'x'}, size-len(b)-len(tail))...)
	return append(b, tail...)
}

// repeat returns as many copies of one message as fit in size bytes, at least
// one.
func repeat(one []byte, size int) []byte { return bytes.Repeat(one, max(size/len(one), 1)) }
