package catalog_test

import "maps"

// betaCases are what both models have in common.
func betaCases() map[string]fieldCase {
	return joined(promptCases(5000), listCases("image_urls", ""), map[string]fieldCase{
		"only what is required":   {},
		"prompt of 2500 in CJK":   {`"prompt":` + quoted("語", 2500), "", ""},
		"prompt of 7000 in emoji": {`"prompt":` + quoted("🦊", 7000), "prompt", "1 to 5000 characters"},

		"no images":     {`"image_urls":null`, "image_urls", "is required"},
		"an empty list": {`"image_urls":[]`, "image_urls", "is required"},
		"one image":     {`"image_urls":` + urls(1), "", ""},
		"seven images":  {`"image_urls":` + urls(7), "", ""},
		"eight images":  {`"image_urls":` + urls(8), "image_urls", "1 to 7 items"},

		"duration 16":          {`"duration":16`, "", ""},
		"duration 5.0":         {`"duration":5.0`, "", ""},
		"duration null":        {`"duration":null`, "", ""},
		"resolution 720p":      {`"resolution":"720p"`, "", ""},
		"resolution 1080p":     {`"resolution":"1080p"`, "", ""},
		"aspect_ratio 16:9":    {`"aspect_ratio":"16:9"`, "", ""},
		"aspect_ratio 9:16":    {`"aspect_ratio":"9:16"`, "", ""},
		"aspect_ratio 4:3":     {`"aspect_ratio":"4:3"`, "", ""},
		"aspect_ratio 3:4":     {`"aspect_ratio":"3:4"`, "", ""},
		"aspect_ratio 1:1":     {`"aspect_ratio":"1:1"`, "", ""},
		"aspect_ratio auto":    {`"aspect_ratio":"auto"`, "aspect_ratio", "16:9, 9:16, 4:3, 3:4 or 1:1"}, // the vendor's, not the contract's
		"aspect_ratio 21:9":    {`"aspect_ratio":"21:9"`, "aspect_ratio", "16:9, 9:16, 4:3, 3:4 or 1:1"},
		"aspect_ratio of 2":    {`"aspect_ratio":2`, "aspect_ratio", "16:9, 9:16, 4:3, 3:4 or 1:1"},
		"audio true":           {`"audio":true`, "", ""},
		"audio false":          {`"audio":false`, "", ""},
		"audio null":           {`"audio":null`, "", ""},
		"audio a text":         {`"audio":"true"`, "audio", "true or false"},
		"watermark true":       {`"watermark":true`, "", ""},
		"watermark 1":          {`"watermark":1`, "watermark", "true or false"},
		"seed 0":               {`"seed":0`, "", ""},
		"seed -1":              {`"seed":-1`, "seed", "integer between 0 and 4294967295"},
		"seed 4294967295":      {`"seed":4294967295`, "", ""},
		"seed 4294967296":      {`"seed":4294967296`, "seed", "integer between 0 and 4294967295"},
		"seed 1.5":             {`"seed":1.5`, "seed", "integer between 0 and 4294967295"},
		"seed a text":          {`"seed":"7"`, "seed", "JSON number, not as a string"},
		"seed null":            {`"seed":null`, "", ""},
		"fields of others":     {`"mode":5,"size":[],"bgm":"x","payload":{},"callback_url":1,"negative_prompt":2`, "", ""},
		"the first is told":    {`"seed":-1,"duration":0,"image_urls":5`, "image_urls", "array"},
		"everything":           {`"image_urls":` + urls(7) + `,"duration":16,"resolution":"1080p","aspect_ratio":"3:4","audio":false,"watermark":true,"seed":1`, "", ""},
		"duration of a text":   {`"duration":"5"`, "duration", "JSON number, not as a string"},
		"resolution in caps":   {`"resolution":"720P"`, "resolution", "720p or 1080p"},
		"resolution a number":  {`"resolution":720`, "resolution", "720p or 1080p"},
		"resolution of others": {`"resolution":"2K"`, "resolution", "720p or 1080p"},
	})
}

func betaQ3Cases() map[string]fieldCase {
	cases := betaCases()
	maps.Copy(cases, map[string]fieldCase{
		"duration 2":      {`"duration":2`, "duration", "integer between 3 and 16"},
		"duration 3":      {`"duration":3`, "", ""},
		"duration 17":     {`"duration":17`, "duration", "integer between 3 and 16"},
		"duration 3.5":    {`"duration":3.5`, "duration", "integer between 3 and 16"},
		"resolution 540p": {`"resolution":"540p"`, "", ""},
		"resolution 360p": {`"resolution":"360p"`, "resolution", "540p, 720p or 1080p"},
	})
	return cases
}

func betaQ3MixCases() map[string]fieldCase {
	cases := betaCases()
	maps.Copy(cases, map[string]fieldCase{
		"duration 0":      {`"duration":0`, "duration", "integer between 1 and 16"},
		"duration 1":      {`"duration":1`, "", ""},
		"duration 17":     {`"duration":17`, "duration", "integer between 1 and 16"},
		"duration 1.5":    {`"duration":1.5`, "duration", "integer between 1 and 16"},
		"resolution 540p": {`"resolution":"540p"`, "resolution", "720p or 1080p"},
	})
	return cases
}
