package kubernetes

import meta "k8s.io/apimachinery/pkg/apis/meta/v1"

// ScaledObject is KEDA's type of that name, with the fields that the manifests use.
type ScaledObject struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Spec struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount int       `json:"minReplicaCount"`
		MaxReplicaCount int       `json:"maxReplicaCount"`
		PollingInterval int       `json:"pollingInterval"`
		Triggers        []Trigger `json:"triggers"`
	} `json:"spec"`
}

// Trigger is a trigger of KEDA's scaler for Temporal.
type Trigger struct {
	Type     string `json:"type"`
	Metadata struct {
		Endpoint        string `json:"endpoint"`
		Namespace       string `json:"namespace"`
		TaskQueue       string `json:"taskQueue"`
		QueueTypes      string `json:"queueTypes"`
		TargetQueueSize string `json:"targetQueueSize"`
	} `json:"metadata"`
}
