// Package kubernetes parses the manifests of deploy/kubernetes strictly: each object into its
// type of k8s.io/api, and KEDA's objects into a struct of the fields that they use. Unknown
// keys, names in another case and duplicate keys are errors.
//
// Its tests compare the manifests with the product's own settings, ports and grace times.
// Package e2e replaces processes in the way that the manifests order. No cluster is started, and
// kustomize does not run: Load implements the parts of kustomize that the manifests use.
package kubernetes
