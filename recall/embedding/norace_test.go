//go:build !race

package embedding

const raceDetector = false
