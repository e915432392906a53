//go:build !race

package sim

// usual is how many histories are played where no number is asked for.
const usual = 30
