// Package vidu plays Vidu: videos of the q3 models, of references or of text and
// frames, as the model and the endpoint are for, which are asked for by the
// vendor's id and can be stopped while they wait.
//
// A marked copy of each video is offered beside the clean one, whether or not
// it was asked for. Links work for a day; each query gives new ones.
// Images are links, which are not fetched.
package vidu
