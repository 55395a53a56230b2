package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Manifests holds the objects of a kustomization.
type Manifests struct {
	Objects []meta.Object
	Files   []string // the files that Load read
}

// All returns the objects of one type.
func All[T meta.Object](m Manifests) (found []T) {
	for _, object := range m.Objects {
		if one, ok := object.(T); ok {
			found = append(found, one)
		}
	}
	return found
}

// Named returns the object of a type with the name.
func Named[T meta.Object](m Manifests, name string) (one T, err error) {
	for _, one := range All[T](m) {
		if one.GetName() == name {
			return one, nil
		}
	}
	return one, fmt.Errorf("there is no %T of the name %s", one, name)
}

// kustomization is the supported content of a file kustomization.yaml.
type kustomization struct {
	meta.TypeMeta `json:",inline"`

	Resources []string `json:"resources"`
	Images    []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
	ConfigMapGenerator []struct {
		Name    string   `json:"name"`
		Files   []string `json:"files"`
		Options struct {
			Labels map[string]string `json:"labels"`
		} `json:"options"`
	} `json:"configMapGenerator"`
	Patches []struct {
		Target struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"target"`
		Patch string `json:"patch"`
	} `json:"patches"`
}

// Load reads the kustomization in a folder and the resources that it names.
func Load(folder string) (m Manifests, err error) {
	file := filepath.Join(folder, "kustomization.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return m, err
	}
	var k kustomization
	if err := decode(text, &k); err != nil {
		return m, fmt.Errorf("%s: %w", file, err)
	}
	m.Files = append(m.Files, file)
	for _, name := range k.Resources {
		if err := m.add(filepath.Join(folder, name)); err != nil {
			return m, err
		}
	}
	return m, errors.Join(m.generate(folder, k), m.patch(k), m.nameImages(k))
}

// add reads a resource: a folder with a kustomization, or a file of objects.
func (m *Manifests) add(path string) error {
	about, err := os.Stat(path)
	if err != nil {
		return err
	}
	if about.IsDir() {
		base, err := Load(path)
		m.Objects, m.Files = append(m.Objects, base.Objects...), append(m.Files, base.Files...)
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	m.Files = append(m.Files, path)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object, err := decodeObject([]byte(document))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		m.Objects = append(m.Objects, object)
	}
	return nil
}

// generate adds the ConfigMaps that are generated from files, without the hash in their names.
func (m *Manifests) generate(folder string, k kustomization) error {
	for _, g := range k.ConfigMapGenerator {
		c := &core.ConfigMap{Data: map[string]string{}}
		c.Name, c.Labels = g.Name, g.Options.Labels
		for _, name := range g.Files {
			path := filepath.Join(folder, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			c.Data[filepath.Base(name)] = string(text)
			m.Files = append(m.Files, path)
		}
		m.Objects = append(m.Objects, c)
	}
	return nil
}

// patch removes the number of pods from a Deployment. The overlays here make no other change.
func (m *Manifests) patch(k kustomization) error {
	for _, p := range k.Patches {
		var steps []struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}
		if err := decode([]byte(p.Patch), &steps); err != nil {
			return fmt.Errorf("the patch of %s: %w", p.Target.Name, err)
		}
		d, err := Named[*apps.Deployment](*m, p.Target.Name)
		if err != nil {
			return err
		}
		for _, s := range steps {
			if p.Target.Kind != "Deployment" || s.Op != "remove" || s.Path != "/spec/replicas" || d.Spec.Replicas == nil {
				return fmt.Errorf("the patch of %s is not understood, or has no effect: %+v", p.Target.Name, s)
			}
			d.Spec.Replicas = nil
		}
	}
	return nil
}

// nameImages replaces the images of containers as the kustomization says.
func (m *Manifests) nameImages(k kustomization) error {
	for _, image := range k.Images {
		used := false
		for _, object := range m.Objects {
			spec := PodSpec(object)
			for i := 0; spec != nil && i < len(spec.Containers); i++ {
				if spec.Containers[i].Image == image.Name {
					used, spec.Containers[i].Image = true, image.NewName+":"+image.NewTag
				}
			}
		}
		if !used {
			return fmt.Errorf("no container has the image %s", image.Name)
		}
	}
	return nil
}

// PodSpec returns the pod of an object that creates pods, or nil for other objects.
func PodSpec(object meta.Object) *core.PodSpec {
	switch object := object.(type) {
	case *apps.Deployment:
		return &object.Spec.Template.Spec
	case *batch.Job:
		return &object.Spec.Template.Spec
	default:
		return nil
	}
}

// decodeObject decodes a document into the type that its apiVersion and kind name.
func decodeObject(document []byte) (meta.Object, error) {
	var about meta.TypeMeta
	if err := yaml.Unmarshal(document, &about); err != nil {
		return nil, err
	}
	types := map[string]meta.Object{
		"apps/v1 Deployment":                     &apps.Deployment{},
		"autoscaling/v2 HorizontalPodAutoscaler": &autoscaling.HorizontalPodAutoscaler{},
		"batch/v1 Job":                           &batch.Job{},
		"keda.sh/v1alpha1 ScaledObject":          &ScaledObject{},
		"networking.k8s.io/v1 NetworkPolicy":     &networking.NetworkPolicy{},
		"policy/v1 PodDisruptionBudget":          &policy.PodDisruptionBudget{},
		"v1 Service":                             &core.Service{},
	}
	object, ok := types[about.APIVersion+" "+about.Kind]
	if !ok {
		return nil, fmt.Errorf("kind %q of %q is not known here", about.Kind, about.APIVersion)
	}
	if err := decode(document, object); err != nil {
		return nil, fmt.Errorf("%s %s: %w", about.Kind, object.GetName(), err)
	}
	return object, nil
}

// decode decodes YAML as the API server does with strict field validation.
func decode(text []byte, into any) error {
	converted, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	problems, err := json.UnmarshalStrict(converted, into)
	return errors.Join(append(problems, err)...)
}
