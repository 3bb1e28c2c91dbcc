import { arrayOf, type Fields, fieldsOf, textOf, textsOf } from './json-fields.ts';

/** Something that happened to a container. */
export interface EngineEvent {
  /** `created`: it has come to be. `started`: its first process runs. `died`: that has ended. `removed`: it is gone. */
  readonly action: 'created' | 'started' | 'died' | 'removed';
  /** The container's, in full. */
  readonly id: string;
  /** Empty for nerdctl, whose events have neither name nor labels. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

const actions: Readonly<Record<string, EngineEvent['action']>> = {
  create: 'created',
  start: 'started',
  die: 'died',
  destroy: 'removed',
  died: 'died', // Podman's word, as is `remove`
  remove: 'removed',
  restart: 'started',
  '/containers/create': 'created', // containerd's topics, as nerdctl prints them
  '/tasks/start': 'started',
  '/tasks/exit': 'died',
  '/containers/delete': 'removed',
};

/**
 * Reads a line of `events --format '{{json .}}'` of Docker (with or without the fields that version 29 left out), Podman and nerdctl. Undefined: not
 * JSON, not of a container, or none of these actions (running programs by `exec` makes events too).
 */
export function parseEvent(line: string): EngineEvent | undefined {
  const event = eventFields(line);
  const type = textOf(event['Type']);
  if (type !== undefined && type !== 'container') return undefined;
  if (event['Topic'] !== undefined) return parseContainerdEvent(event);
  const actor = fieldsOf(event['Actor']);
  const attributes = textsOf(actor['Attributes'] ?? event['Attributes']);
  const action = actions[textOf(event['Action'] ?? event['Status']) ?? ''];
  const id = textOf(actor['ID']) ?? textOf(event['ID']);
  if (action === undefined || id === undefined) return undefined;
  return { action, id, name: attributes['name'] ?? textOf(event['Name']) ?? '', labels: attributes };
}

function parseContainerdEvent(event: Fields): EngineEvent | undefined {
  const details = typeof event['Event'] === 'string' ? eventFields(event['Event']) : fieldsOf(event['Event']);
  const id = textOf(details['container_id']) ?? textOf(details['id']);
  const action = actions[textOf(event['Topic']) ?? ''];
  if (action === undefined || id === undefined) return undefined;
  // A program started by `exec` ends with the same topic; the container's own process has the container's id.
  if (action === 'died' && (textOf(details['id']) ?? id) !== id) return undefined;
  return { action, id, name: '', labels: {} };
}

function eventFields(line: string): Fields {
  try {
    const value: unknown = JSON.parse(line);
    return fieldsOf(arrayOf(value)[0] ?? value);
  } catch {
    return {}; // a warning of the program, or half a line at the engine's end
  }
}
