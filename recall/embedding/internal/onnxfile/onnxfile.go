// Package onnxfile reads the weights and the shape of the graph of an ONNX
// file, leaving the weights on disk until they are asked for.
package onnxfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"google.golang.org/protobuf/encoding/protowire"
)

// Limits of what a file may hold; beyond them it is no model of ours.
const (
	maxMessage = 1 << 20 // One node, one name.
	maxNodes   = 1 << 16
)

// File is an open ONNX file.
type File struct {
	// Nodes are in the file's order, which is one they can be computed in.
	Nodes []Node
	// Weights are the initializers by name.
	Weights map[string]Weight
	// Plain reports that only standard operators are used.
	Plain bool

	f *os.File
}

// Node is one operator of the graph.
type Node struct {
	Op      string
	Inputs  []string
	Outputs []string
	// Ints are the attributes that are one integer.
	Ints map[string]int64
}

// Weight is a tensor of the file.
type Weight struct {
	Dims []int64
	// Float reports float32.
	Float bool

	offset, length int64 // Of the raw data; length -1 if it is kept otherwise.
}

// Size returns the number of elements.
func (w Weight) Size() int64 {
	n := int64(1)
	for _, d := range w.Dims {
		n *= d
	}
	return n
}

// Open reads all but the weights of an ONNX file.
func Open(name string) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	file := &File{Weights: map[string]Weight{}, Plain: true, f: f}
	if err := file.read(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return file, nil
}

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }

// Floats reads a float32 tensor.
func (f *File) Floats(name string) ([]float32, error) {
	w, ok := f.Weights[name]
	if !ok {
		return nil, fmt.Errorf("no weight %q", name)
	}
	n := w.Size()
	if !w.Float || w.length < 0 || n < 0 || n > math.MaxInt32 || w.length != 4*n {
		return nil, fmt.Errorf("weight %q is not plain float32", name)
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f.f, w.offset, w.length), 1<<16)
	out := make([]float32, n)
	buf := make([]byte, 1<<14)
	for i := 0; i < len(out); {
		b := buf[:min(len(buf), 4*(len(out)-i))]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		for ; len(b) > 0; b = b[4:] {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b))
			i++
		}
	}
	return out, nil
}

// The fields of the messages in the ONNX format that are read here.
const (
	modelGraph, modelOpset = 7, 8
	opsetDomain            = 1
	graphNode, graphWeight = 1, 5
	nodeInput, nodeOutput  = 1, 2
	nodeOp, nodeAttribute  = 4, 5
	attrName, attrInt      = 1, 3
	tensorDims, tensorType = 1, 2
	tensorName, tensorRaw  = 8, 9
	typeFloat              = 1
)

func (f *File) read() error {
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a file")
	}
	found := false
	err = f.fields(0, info.Size(), func(num protowire.Number, start, length int64) error {
		switch num {
		case modelGraph:
			found = true
			return f.fields(start, length, f.graphField)
		case modelOpset:
			b, err := f.bytes(start, length)
			if err != nil {
				return err
			}
			return each(b, func(num protowire.Number, v []byte, _ uint64) error {
				if num == opsetDomain && len(v) > 0 && string(v) != "ai.onnx" {
					f.Plain = false
				}
				return nil
			})
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("no graph")
	}
	return err
}

func (f *File) graphField(num protowire.Number, start, length int64) error {
	switch num {
	case graphNode:
		if len(f.Nodes) == maxNodes {
			return errors.New("too many nodes")
		}
		b, err := f.bytes(start, length)
		if err != nil {
			return err
		}
		n, err := parseNode(b)
		if err != nil {
			return err
		}
		f.Nodes = append(f.Nodes, n)
	case graphWeight:
		w, name := Weight{length: -1}, ""
		err := f.fieldsWith(start, length, func(num protowire.Number, at, size int64) error {
			switch num {
			case tensorName:
				b, err := f.bytes(at, size)
				name = string(b)
				return err
			case tensorRaw:
				w.offset, w.length = at, size
			case tensorDims: // Packed.
				b, err := f.bytes(at, size)
				for len(b) > 0 && err == nil {
					v, n := protowire.ConsumeVarint(b)
					if err = protowire.ParseError(n); err == nil {
						w.Dims, b = append(w.Dims, int64(v)), b[n:]
					}
				}
				return err
			}
			return nil
		}, func(num protowire.Number, v uint64) {
			switch num {
			case tensorDims:
				w.Dims = append(w.Dims, int64(v))
			case tensorType:
				w.Float = v == typeFloat
			}
		})
		if err != nil {
			return err
		}
		if len(f.Weights) == maxNodes || len(w.Dims) > 8 {
			return errors.New("too many weights")
		}
		n := int64(1)
		for _, d := range w.Dims {
			if d < 0 || d > math.MaxInt32 || n*d > math.MaxInt32 {
				return errors.New("a weight that is too large")
			}
			n *= d
		}
		f.Weights[name] = w
	}
	return nil
}

func parseNode(b []byte) (Node, error) {
	n := Node{Ints: map[string]int64{}}
	err := each(b, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case nodeInput:
			n.Inputs = append(n.Inputs, string(v))
		case nodeOutput:
			n.Outputs = append(n.Outputs, string(v))
		case nodeOp:
			n.Op = string(v)
		case nodeAttribute:
			name, value, is := "", int64(0), false
			err := each(v, func(num protowire.Number, v []byte, i uint64) error {
				switch num {
				case attrName:
					name = string(v)
				case attrInt:
					value, is = int64(i), true
				}
				return nil
			})
			if is {
				n.Ints[name] = value
			}
			return err
		}
		return nil
	})
	return n, err
}

// fields calls fn for each field of the message at start that has a length.
func (f *File) fields(start, length int64, fn func(num protowire.Number, start, length int64) error) error {
	return f.fieldsWith(start, length, fn, func(protowire.Number, uint64) {})
}

// fieldsWith also calls number for each field that is a varint.
func (f *File) fieldsWith(
	start, length int64, fn func(num protowire.Number, start, length int64) error, number func(num protowire.Number, v uint64),
) error {
	var head [2 * binary.MaxVarintLen64]byte
	for at, end := start, start+length; at < end; {
		b := head[:min(int64(len(head)), end-at)]
		if _, err := f.f.ReadAt(b, at); err != nil {
			return err
		}
		num, kind, n := protowire.ConsumeTag(b)
		if err := protowire.ParseError(n); err != nil {
			return err
		}
		at, b = at+int64(n), b[n:]
		switch kind {
		case protowire.BytesType:
			size, n := protowire.ConsumeVarint(b)
			if err := protowire.ParseError(n); err != nil {
				return err
			}
			at += int64(n)
			if size > uint64(end-at) {
				return io.ErrUnexpectedEOF
			}
			if err := fn(num, at, int64(size)); err != nil {
				return err
			}
			at += int64(size)
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if err := protowire.ParseError(n); err != nil {
				return err
			}
			number(num, v)
			at += int64(n)
		default:
			n := protowire.ConsumeFieldValue(num, kind, b)
			if err := protowire.ParseError(n); err != nil {
				return err
			}
			at += int64(n)
		}
	}
	return nil
}

// bytes reads a small part of the file.
func (f *File) bytes(start, length int64) ([]byte, error) {
	if length > maxMessage {
		return nil, errors.New("a part of the graph that is too large")
	}
	b := make([]byte, length)
	_, err := f.f.ReadAt(b, start)
	if length == 0 {
		err = nil
	}
	return b, err
}

// each calls fn for each field of a message in memory, with its bytes or its
// number.
func each(b []byte, fn func(num protowire.Number, v []byte, i uint64) error) error {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if err := protowire.ParseError(n); err != nil {
			return err
		}
		b = b[n:]
		var v []byte
		var i uint64
		switch kind {
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			i, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(num, kind, b)
		}
		if err := protowire.ParseError(n); err != nil {
			return err
		}
		if err := fn(num, v, i); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
