// The little of the browser's DOM that the page's script uses. The package is compiled without the DOM's types: they would make
// `document`, `name` or `event` known everywhere else, too.

export interface PageElement {
  readonly dataset: Record<string, string | undefined>;
  readonly tagName: string;
  readonly cells: ArrayLike<PageElement>;
  readonly nextElementSibling: PageElement | null;
  readonly previousElementSibling: PageElement | null;
  readonly parentElement: PageElement | null;
  readonly cellIndex: number;
  readonly offsetHeight: number;
  readonly style: { setProperty(name: string, value: string): void };
  hidden: boolean;
  open: boolean;
  value: string;
  checked: boolean;
  tabIndex: number;
  innerHTML: string;
  textContent: string | null;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): ArrayLike<PageElement>;
  closest(selector: string): PageElement | null;
  setAttribute(name: string, value: string): void;
  getAttribute(name: string): string | null;
  cloneNode(deep: boolean): PageElement;
  append(...nodes: readonly PageElement[]): void;
  focus(options?: { readonly preventScroll?: boolean }): void;
  scrollIntoView(options?: { readonly block?: string }): void;
  addEventListener(kind: string, listener: (event: PageEvent) => void): void;
}

export interface PageEvent {
  readonly target: PageElement | null;
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  preventDefault(): void;
}

export interface PageDocument {
  readonly documentElement: PageElement;
  getElementById(id: string): PageElement | null;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): ArrayLike<PageElement>;
  addEventListener(kind: string, listener: (event: PageEvent) => void): void;
}

export interface PageWindow {
  readonly location: { hash: string };
  readonly history: { replaceState(data: unknown, title: string, url: string): void };
  addEventListener(kind: string, listener: () => void): void;
}
