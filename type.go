package mediagate

import "slices"

// Type says what a task produces.
type Type string

// The types. TypeSpeech is of requests that are answered at once: no task has
// it.
const (
	TypeVideo  Type = "video"
	TypeImage  Type = "image"
	TypeMusic  Type = "music"
	TypeArt    Type = "art"
	TypeSpeech Type = "speech"
)

// TypeFacts is all that follows from a type.
type TypeFacts struct {
	Type      Type
	Category  string     // its word in the model list
	Operation string     // its word in contracts; empty: its models have none
	Media     string     // the class of its files: "video", "image" or "audio"
	List      ResultList // which they fill of a task's result
	Task      bool       // whether a request makes a task
}

// What a model that has a contract does, in the contract's words.
const (
	OperationVideo = "video_generation"
	OperationImage = "image_generation"
)

// CategoryUnknown is the word of the model list for models of no catalog.
const CategoryUnknown = "unknown"

// ResultList is a list of the unified result.
type ResultList string

// The lists.
const (
	ListImages ResultList = "images"
	ListVideos ResultList = "videos"
	ListAudios ResultList = "audios"
)

// types is the table: whatever else depends on the type of a model or a task
// is read from here.
var types = []TypeFacts{
	{Type: TypeVideo, Category: "video", Operation: OperationVideo, Media: "video", List: ListVideos, Task: true},
	{Type: TypeImage, Category: "image", Operation: OperationImage, Media: "image", List: ListImages, Task: true},
	{Type: TypeMusic, Category: "audio", Media: "audio", List: ListAudios, Task: true},
	{Type: TypeArt, Category: "image", Operation: OperationImage, Media: "image", List: ListImages, Task: true},
	{Type: TypeSpeech, Category: "audio", Media: "audio"},
}

// Types lists all types.
func Types() []TypeFacts { return slices.Clone(types) }

// Facts is the type's row of the table. A word that is no type has none.
func (t Type) Facts() (TypeFacts, bool) {
	i := slices.IndexFunc(types, func(f TypeFacts) bool { return f.Type == t })
	if i < 0 {
		return TypeFacts{}, false
	}
	return types[i], true
}

// TaskTypes are the types that a task can have.
func TaskTypes() []Type {
	var list []Type
	for _, f := range types {
		if f.Task {
			list = append(list, f.Type)
		}
	}
	return list
}
