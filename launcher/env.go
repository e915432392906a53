package launcher

import "strconv"

// envNonce marks every process of a run, so that what outlives its keeper is
// known for what it is.
const envNonce = "MUSTER_NONCE"

func itoa(n int) string { return strconv.Itoa(n) }
