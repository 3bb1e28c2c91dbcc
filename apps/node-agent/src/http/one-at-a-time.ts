import { type HttpHandler, textAnswer } from '@switchyard/core/health';

/** `handler` for one request at a time; others get 429 meanwhile. For what is too dear to be done twice at once. */
export function oneAtATime(handler: HttpHandler): HttpHandler {
  let isBusy = false;
  return async (request, signal) => {
    if (isBusy) return textAnswer(429, `429 ${request.path} is busy with another request; try again\n`);
    isBusy = true;
    try {
      return await handler(request, signal);
    } finally {
      isBusy = false;
    }
  };
}
