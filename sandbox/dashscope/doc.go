// Package dashscope plays Alibaba's Model Studio. A call for an image lasts until the image is
// ready. Videos by Wan, Kling and Vidu are jobs that can be polled for 24 hours.
//
// The sandbox does not fetch the media that links lead to. If the length of a source video
// matters, it is 4.2 seconds.
package dashscope
