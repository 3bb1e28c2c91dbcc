import { HostError, ipv4Text, ipv6Text } from '@switchyard/core';
import { readUint32 } from '@switchyard/native';
import { hex } from '../../render/elements.ts';
import { birthmarkSet, intervalKind, intervalObjects, ruleMarksSet } from '../../render/names.ts';
import { schemas } from '../../render/schemas.ts';
import { skeletonDigest } from '../../render/skeleton.ts';
import { ElementReader, elementOf, type RawElement } from './decode-elements.ts';
import { objectLayout } from './encode-batch.ts';

const reader = new ElementReader();

/** First element of a notice in words; undefined for objects that packets fill. */
export function describeElement(set: string, attributes: Uint8Array): string | undefined {
  let text: string | undefined;
  reader.read(attributes, 0, attributes.length, (raw) => {
    text ??= keyText(set, attributes, raw);
  });
  return text;
}

/** Whether the element of a notice is the birthmark of our own rules. */
export function isBirthmark(attributes: Uint8Array): boolean {
  let isOurs = false;
  reader.read(attributes, 0, attributes.length, ({ key, keyLength }) => {
    isOurs = keyLength === 4 && readUint32(attributes, key) === skeletonDigest();
  });
  return isOurs;
}

function keyText(set: string, bytes: Uint8Array, raw: Readonly<RawElement>): string | undefined {
  const object = set.slice(0, -1);
  if (object in schemas) return serviceText(set, bytes, raw);
  if ((intervalObjects as readonly string[]).includes(object)) {
    if (intervalKind(object) === 'interface') return interfaceText(bytes, raw);
    return raw.keyLength === 16 ? ipv6Text(bytes, raw.key) : ipv4Text(bytes, raw.key);
  }
  if (/^lb[46]-classes$/.test(set)) return hex(readUint32(bytes, raw.key));
  if (set !== birthmarkSet && set !== ruleMarksSet) return undefined;
  return Buffer.from(bytes.subarray(raw.key, raw.key + raw.keyLength)).toString('hex');
}

function interfaceText(bytes: Uint8Array, { key, keyLength }: Readonly<RawElement>): string {
  return Buffer.from(bytes.subarray(key, key + keyLength))
    .toString('utf8')
    .replace(/\0.*$/s, '');
}

/** Another process may have written an element of another shape. */
function serviceText(set: string, bytes: Uint8Array, raw: Readonly<RawElement>): string {
  try {
    const { id } = elementOf(bytes, { ...raw, dataLength: 0 }, keyOnly(set));
    return id.slice(set.length + 1);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    return 'of another shape';
  }
}

/** Notices of deletions may lack the data. */
function keyOnly(set: string): ReturnType<typeof objectLayout> {
  const layout = objectLayout(set);
  return { ...layout, data: { ...layout.data, length: 0 } };
}
