// The picture of the search: rounds that one steps through, and hypotheses that are explained.
import { ask, element, trying } from './ask.js'

let shown = null
let request = null
let look = null
let nodes = new Map()

const rounds = () => shown.search.rounds

export function showSearch(answer, asked, lookAgain) {
  shown = answer
  request = asked
  look = lookAgain
  nodes = new Map()
  for (const round of rounds()) for (const node of [...round.kept, ...round.pruned]) nodes.set(node.node, node)
  element('verdict').textContent = answer.search.verdict ?? ''
  element('picture').innerHTML = answer.picture
  element('fell').hidden = !answer.search.fell
  const slider = element('round')
  slider.max = Math.max(0, rounds().length - 1)
  const wanted = asked.round ?? rounds().length - 1
  slider.value = wanted
  if (answer.search.fell) rescue()
  element('step').replaceChildren()
  element('step-title').hidden = true
  step(Number(slider.value), false)
}

// Shows the search up to a round.
function step(number, scrolls = true) {
  number = Math.min(Math.max(number, 0), rounds().length - 1)
  if (number < 0) return
  element('round').value = number
  const title = `${number + 1} of ${rounds().length}: ${rounds()[number].title}`
  element('round-shown').textContent = title
  element('round').setAttribute('aria-valuetext', title)
  if (number < shown.from || number >= shown.from + shown.columns) {
    look({ round: number })
    return
  }
  for (const part of element('picture').querySelectorAll('[data-round], [data-edges]')) {
    const of = Number(part.dataset.round ?? part.dataset.edges)
    part.classList.toggle('later', of > number)
  }
  const column = element('picture').querySelector(`[data-round="${number}"]`)
  if (scrolls && column) column.scrollIntoView({ block: 'nearest', inline: 'nearest' })
}

async function rescue() {
  const of = shown
  const told = await ask('rescue', { ...request, round: of.search.fell.round }).catch(() => null)
  if (!told || of !== shown) return
  const kept = told.width === null ? 'No beam of up to 1000 keeps it.'
    : `A beam of ${told.width} keeps it there, and the answer is ${told.right ? 'right' : 'still wrong'}; or learn it.`
  element('verdict').textContent = `${of.search.verdict} ${kept}`
}

const roundOf = (number) => rounds().findIndex((r) => [...r.kept, ...r.pruned].some((n) => n.node === number))

const cardOf = (number) => element('picture').querySelector(`[data-node="${number}"]`)

function pathTo(number) {
  const path = []
  for (let node = nodes.get(number); node; node = nodes.get(node.parent)) path.unshift(node.operator)
  return path
}

export let explained = null

async function explain(number) {
  explained = pathTo(number)
  await trying(async () => {
    const answer = await ask('explain', { ...request, path: explained })
    for (const card of element('picture').querySelectorAll('.now')) card.classList.remove('now')
    cardOf(number)?.classList.add('now')
    element('step-title').hidden = false
    element('step').replaceChildren(...answer.pictures.map((picture) => {
      const part = document.createElement('div')
      part.innerHTML = picture
      return part
    }))
  })
}

function onKey(event) {
  if (!shown) return
  const at = Number(element('round').value)
  const now = event.target.closest?.('[data-node]')
  const across = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
  const down = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (across) {
    step(at + across)
    const round = rounds()[Number(element('round').value)]
    if (now && round.kept.length) cardOf(round.kept[0].node)?.focus()
  } else if (down) {
    const round = rounds()[now ? roundOf(Number(now.dataset.node)) : at]
    const all = [...round.kept, ...round.pruned]
    const place = now ? all.findIndex((n) => n.node === Number(now.dataset.node)) + down : 0
    if (all[place]) cardOf(all[place].node)?.focus()
  } else if ((event.key === 'Enter' || event.key === ' ') && now) {
    explain(Number(now.dataset.node))
  } else return
  event.preventDefault()
}

export function prepareSearch() {
  element('round').addEventListener('input', () => step(Number(element('round').value)))
  element('picture').addEventListener('keydown', onKey)
  element('picture').addEventListener('click', (event) => {
    const card = event.target.closest('[data-node]')
    if (card) explain(Number(card.dataset.node))
  })
  element('fell').addEventListener('click', () => step(shown.search.fell.round))
}
