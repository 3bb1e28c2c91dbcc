import { ApiServerError } from '../../base/errors.ts';
import type { EventSubject } from '../../base/events.ts';
import type { SendJson } from '../send-json.ts';

/**
 * Returns the uid of an event's subject; empty when it is unknown. `kubectl describe service` shows only events with the
 * Service's own uid. It comes from a list request, which this account may send anyway; a GET would need another
 * permission.
 */
export async function subjectUid(subject: EventSubject, send: SendJson, signal: AbortSignal): Promise<string> {
  if (subject.uid !== '' || subject.kind !== 'Service') return subject.uid;
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${subject.name}`, limit: '1' });
  const path = `/api/v1/namespaces/${encodeURIComponent(subject.namespace)}/services?${query.toString()}`;
  try {
    const { status, body } = await send({ method: 'GET', path }, signal);
    return status === 200 ? uidOfFirst(JSON.parse(body)) : '';
  } catch (error) {
    if (error instanceof ApiServerError || error instanceof SyntaxError) return '';
    throw error;
  }
}

function uidOfFirst(list: unknown): string {
  const items = (list as { readonly items?: unknown } | null)?.items;
  const [first] = Array.isArray(items) ? (items as readonly unknown[]) : [];
  const uid = (first as { readonly metadata?: { readonly uid?: unknown } } | undefined)?.metadata?.uid;
  return typeof uid === 'string' ? uid : '';
}
