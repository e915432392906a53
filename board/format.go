package board

// Format is the highest format of the state that this build can execute, store
// and read (architecture.md §7). A state of a higher one is refused in words.
const Format = 1
