// Package dashscope plays Alibaba's Model Studio: images, in one call that lasts
// until they are there, and videos by Wan, Kling and Vidu, as jobs that are known
// for 24 hours.
//
// It does not look at what links lead to. A source video whose length matters
// plays 4.2 seconds.
package dashscope
