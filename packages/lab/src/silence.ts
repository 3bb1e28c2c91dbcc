/** Longest part of a pause of the process that counts as waiting, in milliseconds. */
const step = 250;

/**
 * Calls `onSilence` after `timeout` milliseconds in which this process could have received an answer. On a busy or suspended
 * machine a plain timer expires while the answer is unread in the socket, and a slow answer looks lost. Returns a function
 * that cancels the wait.
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
