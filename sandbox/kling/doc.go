// Package kling plays both generations of Kling's API. They make videos from text, from images,
// and from images together with videos and elements.
package kling
