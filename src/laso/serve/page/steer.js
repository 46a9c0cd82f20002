// What a person asks of the search: parts that are pinned or forbidden, a width, a bias.
import { element, later, options } from './ask.js'

let kind = 'spans'
let words = []
let parts = [] // {what: 'known' | 'banned', part}
let changed = () => {}

export function steering() {
  const of = (what) => parts.filter((each) => each.what === what).map((each) => each.part)
  const bias = Number(element('bias').value)
  return {
    width: Number(element('width').value) || null,
    bias: bias ? { [element('biased').value]: bias } : {},
    known: of('known'),
    banned: of('banned')
  }
}

export function clearParts() {
  parts = []
  list()
}

function described({ what, part }) {
  const text = words.slice(part.start, part.end ?? part.start + 1).join(' ')
  const said = kind === 'arcs'
    ? `${text} ← ${part.head === 0 ? 'root' : words[part.head - 1] ?? 'any head'} ${part.label ?? ''}`
    : kind === 'clusters' ? `${text} with ${part.other === 'new' ? 'a new cluster' : words[part.other]}`
      : `${text}: ${part.label}`
  return `${what === 'known' ? 'pinned' : 'forbidden'} ${said}`
}

function list() {
  element('parts').replaceChildren(...parts.map((each, i) => {
    const item = document.createElement('li')
    const button = document.createElement('button')
    button.type = 'button'
    button.textContent = `${described(each)} ×`
    button.setAttribute('aria-label', `remove: ${described(each)}`)
    button.addEventListener('click', () => { parts.splice(i, 1); list(); changed() })
    item.append(button)
    return item
  }))
}

function add(what) {
  const start = Number(element('start').value)
  const label = element('label').value.trim()
  let part
  if (kind === 'arcs') {
    const head = element('head').value
    part = { start, head: head === '' ? null : Number(head), label: label || null }
  } else if (kind === 'clusters') {
    const other = element('other').value
    part = { start, other: other === 'new' ? 'new' : Number(other) }
  } else {
    part = { start, end: Math.max(start, Number(element('end').value)) + 1, label }
  }
  const place = (each) => each.what === what && JSON.stringify(each.part) === JSON.stringify(part)
  const overlaps = (each) => what === 'known' && each.what === what && kind !== 'clusters' &&
    each.part.start < (part.end ?? start + 1) && start < (each.part.end ?? each.part.start + 1)
  parts = [...parts.filter((each) => !place(each) && !overlaps(each)), { what, part }]
  list()
  changed()
}

// Fills the form with a part of the answer that was clicked.
export function choose(place) {
  element('start').value = place.start
  if (place.end !== undefined) element('end').value = Number(place.end) - 1
  if (place.label !== undefined && kind !== 'clusters') element('label').value = place.label
  if (place.head !== undefined) element('head').value = place.head
}

export function showWords(now) {
  words = now
  const named = now.map((word, i) => `${i + 1} ${word}`)
  const kept = [element('start').value, element('end').value]
  options(element('start'), named)
  options(element('end'), named)
  if (kept[0] < now.length) element('start').value = kept[0] || 0
  if (kept[1] < now.length) element('end').value = kept[1] || 0
  options(element('head'), ['any', 'root', ...named], ['', 0, ...now.map((_, i) => i + 1)])
  options(element('other'), ['a new cluster', ...named], ['new', ...now.map((_, i) => i)])
}

export function prepareSteering(about, whenChanged) {
  kind = about.kind
  changed = whenChanged
  element('end-part').hidden = kind !== 'spans'
  element('head-part').hidden = kind !== 'arcs'
  element('other-part').hidden = kind !== 'clusters'
  element('label-part').hidden = kind === 'clusters'
  element('labels').replaceChildren(...about.labels.map((label) => new Option(label)))
  element('bias-part').hidden = !about.biased.length
  options(element('biased'), about.biased, about.biased)
  if (about.biased.includes('O')) element('biased').value = 'O'
}

export function prepareSteerForm() {
  const soon = later(() => changed())
  element('steer').addEventListener('submit', (event) => event.preventDefault())
  element('pin').addEventListener('click', () => add('known'))
  element('forbid').addEventListener('click', () => add('banned'))
  element('width').addEventListener('input', soon)
  element('biased').addEventListener('change', soon)
  element('bias').addEventListener('input', () => {
    element('bias-shown').textContent = element('bias').value
    soon()
  })
  element('start').addEventListener('change', () => {
    if (Number(element('end').value) < Number(element('start').value)) element('end').value = element('start').value
  })
  element('reset').addEventListener('click', () => {
    element('width').value = ''
    element('bias').value = 0
    element('bias-shown').textContent = '0'
    clearParts()
    changed()
  })
}
