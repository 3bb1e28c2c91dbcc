export * from './manifest-source.ts';
export * from './read-manifest.ts';
export { parseYaml, type YamlDocument, type YamlError } from './parse-yaml.ts';
