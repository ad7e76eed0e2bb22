#include "textflag.h"

// func tileVector(a *float32, lda int, b *float32, k int, bias *float32, out *float32, ldout int)
//
// Y0..Y7 hold the tile, two registers to a row; Y8 and Y9 one row of the panel;
// Y10 and Y11 one element of a, over and over.
TEXT ·tileVector(SB), NOSPLIT, $0-56
	MOVQ a+0(FP), AX
	MOVQ lda+8(FP), R8
	MOVQ b+16(FP), BX
	MOVQ k+24(FP), CX
	MOVQ bias+32(FP), DX
	MOVQ out+40(FP), DI
	MOVQ ldout+48(FP), R9

	LEAQ (AX)(R8*4), R10
	LEAQ (R10)(R8*4), R11
	LEAQ (R11)(R8*4), R12

	VMOVUPS (DX), Y0
	VMOVUPS 32(DX), Y1
	VMOVAPS Y0, Y2
	VMOVAPS Y1, Y3
	VMOVAPS Y0, Y4
	VMOVAPS Y1, Y5
	VMOVAPS Y0, Y6
	VMOVAPS Y1, Y7

	XORQ SI, SI

next:
	VMOVUPS      (BX), Y8
	VMOVUPS      32(BX), Y9
	VBROADCASTSS (AX)(SI*4), Y10
	VBROADCASTSS (R10)(SI*4), Y11
	VFMADD231PS  Y8, Y10, Y0
	VFMADD231PS  Y9, Y10, Y1
	VFMADD231PS  Y8, Y11, Y2
	VFMADD231PS  Y9, Y11, Y3
	VBROADCASTSS (R11)(SI*4), Y10
	VBROADCASTSS (R12)(SI*4), Y11
	VFMADD231PS  Y8, Y10, Y4
	VFMADD231PS  Y9, Y10, Y5
	VFMADD231PS  Y8, Y11, Y6
	VFMADD231PS  Y9, Y11, Y7
	ADDQ         $64, BX
	INCQ         SI
	CMPQ         SI, CX
	JLT          next

	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	LEAQ    (DI)(R9*4), DI
	VMOVUPS Y2, (DI)
	VMOVUPS Y3, 32(DI)
	LEAQ    (DI)(R9*4), DI
	VMOVUPS Y4, (DI)
	VMOVUPS Y5, 32(DI)
	LEAQ    (DI)(R9*4), DI
	VMOVUPS Y6, (DI)
	VMOVUPS Y7, 32(DI)
	VZEROUPPER
	RET
