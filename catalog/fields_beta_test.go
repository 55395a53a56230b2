package catalog_test

// betaCases are what both models have in common.
func betaCases() map[string]fieldCase {
	common := joined(promptCases(5000), listCases("image_urls", ""),
		choiceCases("aspect_ratio", "21:9", "16:9", "9:16", "4:3", "3:4", "1:1"),
		switchCases("audio"), switchCases("watermark"), integerCases("seed", 0, 4294967295))
	return joined(common, map[string]fieldCase{
		"only what is required": {},

		"an empty list": {`"image_urls":[]`, "image_urls", "is required"},
		"seven images":  {`"image_urls":` + urls(7), "", ""},
		"eight images":  {`"image_urls":` + urls(8), "image_urls", "1 to 7 items"},

		"everything": {`"image_urls":` + urls(7) + `,"duration":16,"resolution":"1080p","aspect_ratio":"3:4","audio":false,"watermark":true,"seed":1`, "", ""},
	})
}

func betaQ3Cases() map[string]fieldCase {
	return joined(betaCases(), integerCases("duration", 3, 16), choiceCases("resolution", "2K", "540p", "720p", "1080p"))
}

func betaQ3MixCases() map[string]fieldCase {
	return joined(betaCases(), integerCases("duration", 1, 16), choiceCases("resolution", "540p", "720p", "1080p"))
}
