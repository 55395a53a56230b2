// Package kling plays both generations of Kling's API: text, images, and
// images with videos and elements to video.
package kling
