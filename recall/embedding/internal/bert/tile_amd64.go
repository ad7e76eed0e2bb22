package bert

import "golang.org/x/sys/cpu"

// vectors reports that tileVector may be used.
var vectors = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// tileVector is tile for pointers to the first elements. It checks nothing.
//
//go:noescape
func tileVector(a *float32, lda int, b *float32, k int, bias *float32, out *float32, ldout int)
