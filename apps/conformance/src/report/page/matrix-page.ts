import type { PageData } from '../matrix.ts';
import { detailHtml } from './detail.ts';
import type { PageDocument, PageElement, PageEvent, PageWindow } from './dom.ts';
import { formatHash, isBad, isFiltered, isShown, type PageState, parseHash, type RowFacts } from './page-state.ts';

interface Row {
  readonly element: PageElement;
  readonly facts: RowFacts;
}

interface Group {
  readonly head: PageElement;
  readonly button: PageElement;
  readonly rows: readonly Row[];
  /** Reader's choice while nothing is filtered. A folded group still shows its bad rows. */
  isOpen: boolean;
}

/** Makes the page of a report answer to its filter, its keys and its address. */
export function startMatrixPage(document: PageDocument, window: PageWindow): void {
  new MatrixPage(document, window).start();
}

class MatrixPage {
  readonly #document: PageDocument;
  readonly #window: PageWindow;
  readonly #data: PageData;
  readonly #table: PageElement;
  readonly #detail: PageElement;
  readonly #groups: readonly Group[];
  #state: PageState;
  #focused: PageElement | undefined;

  constructor(document: PageDocument, window: PageWindow) {
    this.#document = document;
    this.#window = window;
    this.#data = JSON.parse(this.#byId('data').textContent ?? '') as PageData;
    this.#table = this.#byId('cases');
    this.#detail = this.#byId('detail');
    this.#groups = list(this.#table.querySelectorAll('tbody')).flatMap(groupOf);
    this.#state = parseHash(window.location.hash);
  }

  start(): void {
    const filter = this.#byId('filter');
    for (const kind of ['input', 'change']) filter.addEventListener(kind, () => this.#readFilter());
    filter.addEventListener('submit', (event) => event.preventDefault());
    filter.addEventListener('reset', () => this.#set({ words: '', statuses: '', tag: '', only: '' }));
    this.#document.addEventListener('click', (event) => this.#click(event));
    this.#document.addEventListener('keydown', (event) => this.#key(event));
    this.#window.addEventListener('hashchange', () => {
      this.#state = parseHash(this.#window.location.hash);
      this.#show();
    });
    this.#window.addEventListener('resize', () => this.#placeHead());
    this.#show();
  }

  /** The table's head sticks below the filter, which takes several lines where the window is narrow. */
  #placeHead(): void {
    this.#document.documentElement.style.setProperty('--bar', `${this.#byId('filter').offsetHeight - 1}px`);
  }

  /** The page has them all; a test looks. */
  #byId(id: string): PageElement {
    return this.#document.getElementById(id) ?? this.#document.documentElement;
  }

  #set(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change };
    this.#window.history.replaceState(undefined, '', `#${formatHash(this.#state)}`);
    this.#show();
  }

  #readFilter(): void {
    const checked = list(this.#document.querySelectorAll('#filter [name=status]:checked'));
    this.#set({
      words: this.#byId('words').value,
      tag: this.#byId('tag').value,
      only: this.#byId('only').value,
      statuses: checked.map(({ value }) => value).join(''),
    });
  }

  #show(): void {
    this.#showFilter();
    this.#showRows();
    this.#showDetail();
  }

  #showFilter(): void {
    const { words, statuses, tag, only } = this.#state;
    for (const [id, value] of [
      ['words', words],
      ['tag', tag],
      ['only', only],
    ] as const) {
      const field = this.#byId(id);
      if (field.value !== value) field.value = value;
    }
    for (const box of list(this.#document.querySelectorAll('#filter [name=status]'))) {
      box.checked = statuses.includes(box.value);
    }
    this.#byId('filter')
      .querySelector('[type=reset]')
      ?.setAttribute('data-idle', String(!isFiltered(this.#state)));
  }

  #showRows(): void {
    const column = this.#data.columns.findIndex(({ key }) => key === this.#state.only);
    this.#document.documentElement.dataset['only'] = column < 0 ? '' : String(column);
    const filtered = isFiltered(this.#state);
    let shown = 0;
    for (const group of this.#groups) {
      const passing = group.rows.filter(({ facts }) => isShown(facts, this.#state, column));
      const isOpen = filtered || group.isOpen;
      for (const row of group.rows) {
        row.element.hidden = !passing.includes(row) || !(isOpen || isBad(row.facts) || this.#isChosen(row));
      }
      group.head.hidden = passing.length === 0;
      group.button.setAttribute('aria-expanded', String(isOpen));
      shown += passing.length;
    }
    const all = this.#groups.reduce((sum, { rows }) => sum + rows.length, 0);
    this.#byId('shown').textContent = shown === all ? `${all} cases` : `${shown} of ${all} cases`;
  }

  #isChosen({ element }: Row): boolean {
    return this.#state.caseId !== '' && element.dataset['id'] === this.#state.caseId;
  }

  #showDetail(): void {
    const { caseId, proxy } = this.#state;
    const html = caseId === '' ? undefined : detailHtml(this.#data, caseId, proxy);
    for (const chosen of list(this.#table.querySelectorAll('[aria-selected=true]')))
      chosen.setAttribute('aria-selected', 'false');
    this.#detail.hidden = caseId === '';
    this.#document.documentElement.dataset['detail'] = caseId === '' ? '' : 'open';
    if (caseId === '') return;
    const body = this.#byId('detail-body');
    body.innerHTML = html ?? '<p>This report has no such case.</p>';
    for (const article of list(this.#document.querySelectorAll('article.failure'))) {
      const isThis = article.dataset['case'] === caseId && (proxy === '' || article.dataset['proxy'] === proxy);
      const paths = isThis ? article.querySelector('.failure-body') : null;
      if (paths !== null) (body.querySelector('.slot') ?? body).append(paths.cloneNode(true));
    }
    for (const figure of list(this.#document.querySelectorAll('main figure'))) {
      if (figure.dataset['rollout'] === `${proxy} ${caseId}`) body.append(figure.cloneNode(true));
    }
    const cell = this.#cellOf(caseId, proxy);
    if (cell !== undefined) {
      cell.setAttribute('aria-selected', 'true');
      this.#moveTo(cell, false);
      cell.scrollIntoView({ block: 'nearest' });
    }
  }

  #cellOf(caseId: string, proxy: string): PageElement | undefined {
    const column = Math.max(
      0,
      this.#data.columns.findIndex(({ key }) => key === proxy),
    );
    const row = this.#groups.flatMap(({ rows }) => rows).find(({ element }) => element.dataset['id'] === caseId);
    return row?.element.cells[column + 1];
  }

  #click(event: PageEvent): void {
    const { target } = event;
    if (target === null || target.closest('a') !== null) return;
    if (target.closest('#close') !== null) return this.#set({ caseId: '', proxy: '' });
    const only = target.closest('[data-choose]')?.dataset['choose'];
    if (only !== undefined) return this.#set({ only: only === this.#state.only ? '' : only });
    const words = target.closest('[data-words]')?.dataset['words'];
    if (words !== undefined) return this.#set({ words });
    const button = target.closest('.group button');
    const group = this.#groups.find((one) => one.button === button);
    if (group !== undefined) return this.#toggle(group);
    const mark = target.closest('[data-case]');
    if (mark !== null && target.closest('article') === null) {
      return this.#set({ caseId: mark.dataset['case'] ?? '', proxy: mark.dataset['proxy'] ?? '' });
    }
    const cell = target.closest('#cases td');
    if (cell !== null) this.#choose(cell);
  }

  #toggle(group: Group): void {
    group.isOpen = group.button.getAttribute('aria-expanded') !== 'true';
    this.#showRows();
    if (isFiltered(this.#state)) for (const { element } of group.rows) element.hidden = !group.isOpen || element.hidden;
    group.button.setAttribute('aria-expanded', String(group.isOpen));
  }

  #choose(cell: PageElement): void {
    const caseId = cell.closest('tr')?.dataset['id'];
    if (caseId === undefined) return;
    this.#set({ caseId, proxy: this.#data.columns[cell.cellIndex - 1]?.key ?? '' });
    this.#moveTo(cell, true);
  }

  #key(event: PageEvent): void {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = target !== null && ['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName);
    if (key === 'Escape' && this.#state.caseId !== '') {
      this.#set({ caseId: '', proxy: '' });
      return this.#focused?.focus();
    }
    if (key === '/' && !isTyping) {
      event.preventDefault();
      return this.#byId('words').focus();
    }
    const cell = target?.closest('#cases td') ?? null;
    if (cell === null) return;
    if (key === 'Enter' || key === ' ') {
      event.preventDefault();
      return this.#choose(cell);
    }
    const next = neighbour(cell, key);
    if (next === undefined) return;
    event.preventDefault();
    this.#moveTo(next, true);
  }

  /** One cell of the table is in the tab order; arrow keys move from there. */
  #moveTo(cell: PageElement, takesFocus: boolean): void {
    const first = this.#focused ?? this.#table.querySelector('td[tabindex="0"]');
    if (first !== null) first.tabIndex = -1;
    cell.tabIndex = 0;
    this.#focused = cell;
    if (takesFocus) cell.focus();
  }
}

function groupOf(body: PageElement): readonly Group[] {
  const head = body.querySelector('tr.group');
  const button = head?.querySelector('button') ?? null;
  if (head === null || button === null) return [];
  const rows = list(body.querySelectorAll('tr[data-id]')).map((element) => ({ element, facts: factsOf(element) }));
  return [{ head, button, rows, isOpen: button.getAttribute('aria-expanded') === 'true' }];
}

function factsOf({ dataset, cells }: PageElement): RowFacts {
  const { id = '', tags = '', marks = '', differs } = dataset;
  const title = cells[0]?.querySelector('.title')?.textContent ?? '';
  return {
    text: `${id}\n${title}\n${tags}`.toLowerCase(),
    tags: tags.split(' '),
    marks: marks.split(' '),
    differs: differs !== undefined,
  };
}

/** The cell that an arrow key leads to, over what is hidden; undefined: none, or another key. */
function neighbour(cell: PageElement, key: string): PageElement | undefined {
  const row = cell.parentElement;
  if (row === null) return undefined;
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    const next = key === 'ArrowLeft' ? cell.previousElementSibling : cell.nextElementSibling;
    return next !== null && next.tagName === 'TD' ? next : undefined;
  }
  if (key !== 'ArrowUp' && key !== 'ArrowDown') return undefined;
  const rows = list(row.closest('table')?.querySelectorAll('tr[data-id]') ?? []).filter(({ hidden }) => !hidden);
  const next = rows[rows.indexOf(row) + (key === 'ArrowUp' ? -1 : 1)];
  return next?.cells[cell.cellIndex];
}

function list(elements: ArrayLike<PageElement>): readonly PageElement[] {
  return Array.from(elements);
}
