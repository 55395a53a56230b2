// Package kling plays the legacy standard of Kling's API: text, images, and
// images with videos and elements to video.
package kling
