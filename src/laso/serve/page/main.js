// The page: what is looked at, and the parts that show it.
import { ask, element, Failed, options, save, trying } from './ask.js'
import { explained, prepareSearch, showSearch } from './search.js'
import { choose, clearParts, prepareSteerForm, prepareSteering, showWords, steering } from './steer.js'
import { prepareTeaching, showLessons } from './teach.js'
import { follow } from './watch.js'

const FIRST = 'The old man the boats .'
let about = null
let place = null // {item} of the files, or {text, sentence}
let shown = null
let chosen = null // an alternative in place of the answer
let asked = 0

const request = () => ({ ...place, steering: steering() })

async function look(more = {}) {
  if (!place) return
  const mine = ++asked
  await trying(async () => {
    const answer = await ask('look', { ...request(), ...more })
    if (mine === asked) show(answer, { ...request(), ...more })
  })
}

function show(answer, of) {
  shown = answer
  chosen = null
  element('answer').innerHTML = answer.answer
  const sure = answer.probability === null ? 'steered' : `probability ${answer.probability.toFixed(3)}`
  const score = answer.search.score === null ? '' : `, score ${answer.search.score.toFixed(2)}`
  const right = answer.search.known ? (answer.search.right ? ', right' : ', wrong') : ''
  element('sure').textContent = `${sure}${score}${right}`
  element('gold-part').hidden = element('learn-gold').hidden = answer.gold === null
  element('gold').innerHTML = answer.gold ?? ''
  element('sentences-part').hidden = place.item !== undefined || answer.sentences < 2
  element('sentences').textContent = `of ${answer.sentences}`
  element('sentence').max = answer.sentences
  showWords(answer.words)
  showAlternatives(answer.alternatives)
  showLessons(answer.lessons)
  showSearch(answer, of, look)
}

function showAlternatives(alternatives) {
  element('alternatives').replaceChildren(...alternatives.map((each, i) => {
    const label = document.createElement('label')
    const button = document.createElement('input')
    button.type = 'radio'
    button.name = 'alternative'
    button.addEventListener('change', () => {
      chosen = each.output
      element('answer').innerHTML = each.answer
      element('sure').textContent = `alternative ${i + 1}, score ${each.score.toFixed(2)}`
    })
    const number = document.createElement('span')
    number.className = 'number'
    number.textContent = each.score.toFixed(2)
    const part = document.createElement('div')
    part.className = 'answer'
    part.innerHTML = each.answer
    label.append(button, number, part)
    return label
  }))
}

function lookAt(where) {
  place = where
  clearParts()
  return look()
}

async function compare() {
  await trying(async () => {
    const text = element('text').value
    const told = await ask('compare', {
      first: steering(), second: { width: Number(element('second-width').value) || null },
      other: element('use-other').checked, ...(about.examples.length ? {} : { text })
    })
    element('compared').textContent = `${told.different.length} of ${told.examples} differ; the surest come first.`
    element('differences').replaceChildren(...told.different.slice(0, 200).map((row) => {
      const part = document.createElement('div')
      part.className = 'difference answer'
      const [a, b] = row.probabilities.map((p) => p.toFixed(3))
      part.innerHTML = `<h3></h3>${row.first}${row.second}` + (row.gold === null ? '' : row.gold)
      part.firstChild.textContent = `Example ${row.number + 1}: first ${a}, second ${b}` + (row.gold === null ? '' : ', gold')
      return part
    }))
  }, 'comparing ...')
}

async function exported(form) {
  await trying(async () => {
    const path = form === 'html' && explained ? { path: explained } : {}
    const told = await ask('export', { ...request(), form, ...path })
    save(told.name, told.content, form === 'svg' ? 'image/svg+xml' : 'text/html')
  })
}

function prepare() {
  element('input').addEventListener('submit', (event) => {
    event.preventDefault()
    lookAt({ text: element('text').value, sentence: 0 })
  })
  element('text').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) element('input').requestSubmit()
  })
  element('open').addEventListener('change', async () => {
    const [file] = element('open').files
    if (!file) return
    element('text').value = await file.text()
    element('input').requestSubmit()
  })
  element('examples').addEventListener('change', () => lookAt({ item: Number(element('examples').value) }))
  element('sentence').addEventListener('change', () => lookAt({ ...place, sentence: Number(element('sentence').value) - 1 }))
  element('answer').addEventListener('click', (event) => {
    const part = event.target.closest('[data-start]')
    if (part) choose(part.dataset)
  })
  element('answer').addEventListener('keydown', (event) => {
    const part = event.target.closest('.arc')
    if (part && event.key === 'Enter') choose(part.dataset)
  })
  element('compare').addEventListener('click', compare)
  element('as-html').addEventListener('click', () => exported('html'))
  element('as-svg').addEventListener('click', () => exported('svg'))
  prepareSearch()
  prepareSteerForm()
  prepareTeaching(request, () => chosen, () => shown.gold_output, look)
}

async function begin() {
  about = await ask('about')
  element('about').textContent = `${about.estimator}, ${about.labels.length} labels, ${about.queue}`
  options(element('strategy'), about.strategies, about.strategies)
  element('strategy').value = about.strategies.includes(about.strategy) ? about.strategy : about.strategies[0]
  element('save-part').hidden = !about.saves
  element('other-model').hidden = !about.other
  element('examples-part').hidden = !about.examples.length
  options(element('examples'), about.examples.map((text, i) => `${i + 1} ${text}`))
  prepareSteering(about, look)
  showLessons(about.lessons)
  if (about.examples.length) return lookAt({ item: 0 })
  if (about.kind === 'spans' && !element('text').value) element('text').value = FIRST
  return element('text').value ? lookAt({ text: element('text').value, sentence: 0 }) : undefined
}

prepare()
trying(begin).then(() => { if (!about) element('about').textContent = '' })
follow(() => trying(begin)).catch((error) => { if (!(error instanceof Failed)) throw error })
