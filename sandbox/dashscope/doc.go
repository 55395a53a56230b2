// Package dashscope plays Alibaba's Model Studio: images, in one call that
// lasts until they are there.
package dashscope
