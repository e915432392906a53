//go:build race

package sim

// usual is how many histories are played where no number is asked for. The race detector looks
// at how the product's goroutines meet, which few show as well as many; each takes five times as long.
const usual = 6
