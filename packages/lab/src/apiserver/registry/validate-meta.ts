import { type FieldError, invalidField, requiredField } from '../field-error.ts';
import { type JsonObject, objectAt, stringAt } from '../json.ts';
import type { ResourceDefinition } from '../resource.ts';

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const qualifiedName = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
  "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end " +
  "with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const labelValueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with " +
  "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/** Returns the errors in an object's name and labels. */
export function validateMeta(resource: ResourceDefinition, object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const name = stringAt(object, 'metadata', 'name');
  if (name === '') errors.push(requiredField('metadata.name', 'name or generateName is required'));
  else if (resource.nameRule === 'label' && (!label.test(name) || name.length > 63)) {
    errors.push(invalidField('metadata.name', name, name.length > 63 ? 'must be no more than 63 bytes' : labelText));
  } else if (resource.nameRule === 'subdomain' && (!subdomain.test(name) || name.length > 253)) {
    errors.push(
      invalidField('metadata.name', name, name.length > 253 ? 'must be no more than 253 bytes' : subdomainText),
    );
  }
  for (const [key, value] of Object.entries(objectAt(object, 'metadata', 'labels'))) {
    const short = key.slice(key.lastIndexOf('/') + 1);
    if (!qualifiedName.test(short) || short.length > 63) {
      errors.push(invalidField('metadata.labels', key, 'name part must be a valid label key'));
    }
    const text = String(value);
    if (text.length > 63) errors.push(invalidField('metadata.labels', text, 'must be no more than 63 bytes'));
    else if (text !== '' && !qualifiedName.test(text)) {
      errors.push(invalidField('metadata.labels', text, labelValueText));
    }
  }
  return errors;
}
