/** A process that stood still has not listened: of each pause only this much counts, in milliseconds. */
const step = 250;

/**
 * Calls `onSilence` when `timeout` milliseconds have passed in which this process could have heard an answer. On a machine that is
 * busy, or was suspended, a plain timer runs out while the answer lies unread in the socket, and what is slow looks lost. Returns what
 * calls it off.
 */
export function afterSilence(timeout: number, onSilence: () => void): () => void {
  let left = timeout;
  let timer: NodeJS.Timeout | undefined;
  let turn: NodeJS.Immediate | undefined;
  const wait = (): void => {
    const next = Math.min(left, step);
    left -= next;
    timer = setTimeout(() => {
      if (left > 0) wait();
      else turn = setImmediate(onSilence); // what has come is read before
    }, next);
  };
  wait();
  return () => {
    clearTimeout(timer);
    clearImmediate(turn);
  };
}
