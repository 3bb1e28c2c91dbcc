// Renders a Helm chart without Helm: the same template engine (text/template) and the same function library (sprig),
// with Helm's own functions and objects written anew. Used by tests only; compiled by ../helm.ts with Debian's Go.
//
// usage: helm-render CHART-FOLDER < {"name": ..., "namespace": ..., "values": {...}}
// Prints {"templates/x.yaml": "text", ...}. What Helm would refuse ends with 1 and a line on stderr.
//
// Not here: dependencies, hooks, lookup of live objects, .Files, values.schema.json (the test checks that).
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v2"
)

type object = map[string]interface{}

type request struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Values    object `json:"values"`
}

func main() {
	if len(os.Args) != 2 {
		fail(errors.New("usage: helm-render CHART-FOLDER < request.json"))
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	var wanted request
	if err := json.Unmarshal(input, &wanted); err != nil {
		fail(err)
	}
	rendered, err := render(os.Args[1], wanted)
	if err != nil {
		fail(err)
	}
	output, err := json.Marshal(rendered)
	if err != nil {
		fail(err)
	}
	os.Stdout.Write(output)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func render(folder string, wanted request) (map[string]string, error) {
	metadata, err := readYaml(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	values, err := readYaml(filepath.Join(folder, "values.yaml"))
	if err != nil {
		return nil, err
	}
	all, names, err := parse(folder)
	if err != nil {
		return nil, err
	}
	context := object{
		"Values": merge(values, wanted.Values),
		"Chart":  capitalized(metadata),
		"Release": object{
			"Name": wanted.Name, "Namespace": wanted.Namespace, "Service": "Helm",
			"IsInstall": true, "IsUpgrade": false, "Revision": 1,
		},
		"Capabilities": object{
			"KubeVersion": object{"Version": "v1.36.0", "Major": "1", "Minor": "36"},
		},
	}
	rendered := map[string]string{}
	for _, name := range names {
		if strings.HasPrefix(filepath.Base(name), "_") {
			continue
		}
		context["Template"] = object{"Name": name, "BasePath": "templates"}
		var text bytes.Buffer
		if err := all.ExecuteTemplate(&text, name, context); err != nil {
			return nil, err
		}
		rendered[name] = withoutNoValue(text.String())
	}
	return rendered, nil
}

// Every file below templates/, as one set: a file may include what another defines.
func parse(folder string) (*template.Template, []string, error) {
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	var names []string
	err := filepath.Walk(filepath.Join(folder, "templates"), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		names = append(names, name)
		_, err = all.New(name).Parse(string(text))
		return err
	})
	return all, names, err
}

// What Helm adds to, and takes from, sprig.
func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env")
	delete(known, "expandenv")
	known["toYaml"] = func(value interface{}) string {
		text, err := toYaml(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(text, "\n")
	}
	known["fromYaml"] = func(text string) object {
		value := object{}
		if err := fromYaml([]byte(text), &value); err != nil {
			value["Error"] = err.Error()
		}
		return value
	}
	known["include"] = func(name string, context interface{}) (string, error) {
		var text bytes.Buffer
		err := all.ExecuteTemplate(&text, name, context)
		return text.String(), err
	}
	known["tpl"] = func(text string, context interface{}) (string, error) {
		copied, err := all.Clone()
		if err != nil {
			return "", err
		}
		parsed, err := copied.New("tpl").Parse(text)
		if err != nil {
			return "", err
		}
		var result bytes.Buffer
		err = parsed.Execute(&result, context)
		return withoutNoValue(result.String()), err
	}
	known["required"] = func(message string, value interface{}) (interface{}, error) {
		if text, isText := value.(string); value == nil || (isText && text == "") {
			return nil, errors.New(message)
		}
		return value, nil
	}
	known["lookup"] = func(string, string, string, string) object { return object{} }
	return known
}

// text/template writes this for what is missing; Helm removes it.
func withoutNoValue(text string) string {
	return strings.ReplaceAll(text, "<no value>", "")
}

// As Helm: through JSON, so that numbers are floats and keys are sorted.
func toYaml(value interface{}) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var plain interface{}
	if err := yaml.Unmarshal(text, &plain); err != nil {
		return "", err
	}
	result, err := yaml.Marshal(plain)
	return string(result), err
}

func fromYaml(text []byte, into *object) error {
	var plain interface{}
	if err := yaml.UnmarshalStrict(text, &plain); err != nil {
		return err
	}
	asJson, err := json.Marshal(withTextKeys(plain))
	if err != nil {
		return err
	}
	return json.Unmarshal(asJson, into)
}

func readYaml(path string) (object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	value := object{}
	if err := fromYaml(text, &value); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return value, nil
}

// encoding/json wants text as keys.
func withTextKeys(value interface{}) interface{} {
	switch value := value.(type) {
	case map[interface{}]interface{}:
		result := object{}
		for key, item := range value {
			result[fmt.Sprint(key)] = withTextKeys(item)
		}
		return result
	case []interface{}:
		for index, item := range value {
			value[index] = withTextKeys(item)
		}
	}
	return value
}

// The user's values over the chart's; null removes one.
func merge(chart, user object) object {
	for key, value := range user {
		theirs, isObject := value.(object)
		ours, wasObject := chart[key].(object)
		switch {
		case value == nil:
			delete(chart, key)
		case isObject && wasObject:
			chart[key] = merge(ours, theirs)
		default:
			chart[key] = value
		}
	}
	return chart
}

// .Chart is a Go structure in Helm: its fields begin with capitals.
func capitalized(metadata object) object {
	result := object{}
	for key, value := range metadata {
		result[strings.ToUpper(key[:1])+key[1:]] = value
	}
	return result
}
