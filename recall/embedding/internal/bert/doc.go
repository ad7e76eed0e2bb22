// Package bert runs a BERT encoder of MiniLM's kind on plain Go, with a kernel
// of vector instructions where the processor has them.
//
// Texts of a batch are laid one behind the other rather than padded to the
// longest, and every number is summed in the same order whatever else is in
// the batch, so that a text has one vector to the bit: alone, in a batch, on
// one core or on many.
package bert
