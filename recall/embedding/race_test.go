//go:build race

package embedding

const raceDetector = true
