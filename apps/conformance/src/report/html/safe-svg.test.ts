import { expect, test } from 'vitest';
import { safeSvg } from './safe-svg.ts';

test.each([
  '<svg viewBox="0 0 10 10"><rect x="1" y="2" class="bar good"><title>a &#60; b</title></rect><text>ready</text></svg>',
  '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="x"><g transform="translate(0 1)"><line x1="1"/></g></svg>',
  '\n<svg>\n</svg>\n',
])('%s may stand in a page', (markup) => {
  expect(safeSvg(markup)).toBe(markup.trim());
});

test.each([
  { what: 'a script', markup: '<svg><script>alert(1)</script></svg>' },
  { what: 'an event handler', markup: '<svg onload="alert(1)"></svg>' },
  { what: 'a handler without quotes', markup: '<svg><rect onclick=alert(1)></rect></svg>' },
  { what: 'a link', markup: '<svg><a href="javascript:alert(1)">x</a></svg>' },
  { what: 'an image from elsewhere', markup: '<svg><image href="http://x/y"/></svg>' },
  { what: 'a use of elsewhere', markup: '<svg><use href="http://x/y#z"/></svg>' },
  { what: 'a fill from elsewhere', markup: '<svg><rect fill="url(http://x/y#z)"/></svg>' },
  { what: 'HTML inside', markup: '<svg><foreignObject><b>x</b></foreignObject></svg>' },
  { what: 'a style element with attributes', markup: '<svg><style media="all">*{}</style></svg>' },
  { what: 'markup in a style element', markup: '<svg><style><script>alert(1)</script></style></svg>' },
  { what: 'a comment', markup: '<svg><!-- --></svg>' },
  { what: 'an element that is not closed', markup: '<svg><g></svg>' },
  { what: 'something behind', markup: '<svg></svg><script>alert(1)</script>' },
  { what: 'a second drawing behind', markup: '<svg></svg><svg></svg>' },
  { what: 'text in front', markup: 'x<svg></svg>' },
  { what: 'text behind', markup: '<svg></svg>x' },
  { what: 'another name space', markup: '<svg xmlns="http://www.w3.org/1999/xhtml"></svg>' },
  { what: 'no drawing', markup: '<g></g>' },
  { what: 'nothing', markup: '' },
])('$what may not', ({ markup }) => {
  expect(safeSvg(markup)).toBeUndefined();
});

test('styles are left out', () => {
  expect(safeSvg('<svg class="a"><style>* { color: red }</style><g></g></svg>')).toBe('<svg class="a"><g></g></svg>');
});
