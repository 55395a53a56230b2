// Package midjourney plays a midjourney-proxy in both of its dialects: the larger one (trueai)
// below /midjourney, and the original (novicezk) below /midjourney/novicezk. Each dialect knows
// only its own jobs.
//
// A grid has four different quarters. An upscaled picture is the quarter with its number. While
// a job runs, its picture is a draft, whose link works until the job has ended. The links to
// results work for a day. Each poll returns new links.
//
// If a prompt has a parameter that Midjourney does not know, the sandbox refuses the request at
// once. The real proxy would create a job that fails. The larger dialect removes the speeds from
// a prompt before Midjourney reads it. Words in curly braces and --repeat make several jobs. All
// of them are billed, and the results are those of the first. Videos, and buttons that make
// several jobs, are not supported. A job in relax mode always reports a queue.
package midjourney
