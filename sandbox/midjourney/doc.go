// Package midjourney plays a midjourney-proxy in both of its dialects: the
// larger one below /midjourney, the original below /midjourney/novicezk. Their
// jobs are not known to each other.
//
// Grids have four quarters that differ, and one that is upscaled is the quarter
// of its number. While a job runs its picture is a draft, whose link works until
// the job has ended. Links work for a day; each question gives new ones.
//
// A parameter of a prompt that no robot takes is refused at once, where the
// proxy would let the job fail. The larger dialect takes the speeds out of a prompt
// before Midjourney reads it. Words in curly braces and --repeat make several jobs:
// all are billed, and the first one is played. Films, and buttons that make several
// jobs, are not. What a job of the slow kind finds is always a queue.
package midjourney
