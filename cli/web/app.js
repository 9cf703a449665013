// The page of dpnode-web: shows what the daemon says, as it comes. Text from peers is only ever set as text.
'use strict';

const ROUNDS = 512, ROWS = 12, EVENTS = 20, RETRY_MS = 2000, TEXTS_MS = 3000;
const PHASES = ['computed', 'data', 'publish', 'apply', 'state', 'tell'];
const PHASE_TEXT = {computed: 'steps', data: 'waiting for data', publish: 'encoding updates', apply: 'applying rounds',
                    state: 'state and checkpoints', tell: 'handing over to the daemon'};
const byId = id => document.getElementById(id);

const rounds = new Map(); // by their numbers
let shown = null; // id of the run that is shown, and the slot of its chain
let events = [], lastNews = '', textsAsked = 0, unit = 'tokens';

// ---- text

// The text of a model may hold control characters.
const printable = text => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');
function element(name, text, classes) {
  const made = document.createElement(name);
  made.textContent = text;
  if (classes) made.className = classes;
  return made;
}
const known = value => value !== null && value !== undefined;
function count(value) {
  for (const [least, unit] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (value >= least) return (value / least).toPrecision(3) + ' ' + unit;
  return String(Math.round(value)) + ' ';
}
const bytes = value => count(value) + 'B';
const number = value => count(value).trim();
function span(seconds) {
  if (seconds < 1) return Math.round(1000 * seconds) + ' ms';
  if (seconds < 120) return seconds.toFixed(1) + ' s';
  if (seconds < 7200) return Math.round(seconds / 60) + ' min';
  return (seconds / 3600).toFixed(1) + ' h';
}
const clock = ms => new Date(ms).toLocaleTimeString();

// ---- the parts of the page

function card(text, value, more, mood) {
  const made = document.createElement('div');
  made.className = 'card';
  made.append(element('span', text), element('b', value, mood), element('span', more || '\u00a0'));
  return made;
}

function showCards(status, run) {
  const cards = [];
  const add = (...words) => cards.push(card(...words));
  if (known(run.round)) {
    add('round', String(run.round), known(run.round_ms) ? 'each about ' + span(run.round_ms / 1000) : '');
    if (run.loss > 0) add('loss', run.loss.toFixed(3), 'nats per ' + unit.slice(0, -1));
    if (run.held_out) add('held out, round ' + run.held_out.round, run.held_out.loss.toFixed(3),
                          run.held_out.bits_per_byte.toFixed(2) + ' bits per byte');
    add(unit + ' of the run', number(run.tokens), known(run.elements) ? number(run.elements) + ' parameters' : '');
    const late = run.alive < run.members;
    add('members alive', run.alive + ' of ' + Math.max(run.members, run.alive),
        run.quorum ? run.voters + ' vote' : 'no majority of the voters is reachable', run.quorum ? (late ? 'warn' : '') : 'bad');
  }
  if (known(run.tokens_per_s)) add('this node', number(run.tokens_per_s) + ' ' + unit + '/s', run.device || '');
  else add('this node', run.trainer === 'up' ? (run.trains ? 'measuring' : 'not training') : 'trainer ' + run.trainer, run.device || '',
           run.trainer === 'failing' ? 'bad' : '');
  if (known(run.counted)) add('counted in', run.counted + (run.counted === 1 ? ' round' : ' rounds'), run.is_voter ? 'this node votes' : '');
  const machine = status.machine || {};
  if (known(machine.celsius) || known(machine.watts))
    add('device', known(machine.celsius) ? machine.celsius.toFixed(0) + ' \u00b0C' : '', known(machine.watts) ? machine.watts.toFixed(0) + ' W' : '');
  if (known(run.compute_utilisation)) add('computing', (100 * run.compute_utilisation).toFixed(1) + ' %', 'of the time');
  add('sent', bytes(run.bytes_sent), 'received ' + bytes(run.bytes_received));
  if (known(run.keep)) add('updates', '1 of ' + run.keep, 'elements are sent');
  add('daemon\'s memory', bytes(status.rss_bytes), 'up ' + span(status.uptime_s));
  byId('cards').replaceChildren(...cards);
}

function showPhases(spent) {
  const total = PHASES.reduce((sum, phase) => sum + (spent ? spent[phase] || 0 : 0), 0);
  const bars = [], words = [];
  PHASES.forEach((phase, i) => {
    const share = total > 0 ? (spent[phase] || 0) / total : 0;
    const bar = element('i', '', 'f' + i);
    bar.style.width = 100 * share + '%';
    bar.title = PHASE_TEXT[phase];
    bars.push(bar);
    const word = document.createElement('span');
    word.append(element('i', '', 'swatch f' + i), PHASE_TEXT[phase] + ' ' + (100 * share).toFixed(1) + ' %');
    words.push(word);
  });
  byId('phases').replaceChildren(...bars);
  byId('legend').replaceChildren(...words);
}

// A table without rows says so, once it is known that there are none.
function fillTable(id, heads, rows) {
  if (rows.length === 0) {
    byId(id).replaceChildren(element('caption', 'none yet'));
    return;
  }
  const table = byId(id), head = document.createElement('tr');
  heads.forEach(([text, classes]) => head.append(element('th', text, classes)));
  table.replaceChildren(head, ...rows.map(cells => {
    const line = document.createElement('tr');
    cells.forEach((cell, i) => {
      const [text, mood] = Array.isArray(cell) ? cell : [cell, ''];
      line.append(element('td', text, [heads[i][1], mood].filter(Boolean).join(' ')));
    });
    return line;
  }));
}

const shortName = peer => peer.name || peer.short;

function showRounds() {
  const all = [...rounds.values()].sort((a, b) => a.round - b.round);
  fillTable('rounds', [['round', 'n'], ['at'], ['kind'], ['took', 'n'], ['compute', 'n'], ['transfer', 'n'], ['wait', 'n'], ['counted', 'n'], ['loss', 'n'], [unit, 'n'], ['bytes', 'n'],
                       ['left out', 'long']],
            all.slice(-ROWS).reverse().map(r => [
              String(r.round), clock(r.time_ms), r.kind, known(r.duration_ms) ? span(r.duration_ms / 1000) : '-',
              known(r.compute_ms) ? span(r.compute_ms / 1000) : '-', known(r.transfer_ms) ? span(r.transfer_ms / 1000) : '-',
              known(r.wait_ms) ? span(r.wait_ms / 1000) : '-',
              [r.listed + ' of ' + r.active, r.listed < r.active ? 'warn' : ''], known(r.loss) ? r.loss.toFixed(3) : '-', number(r.tokens),
              bytes(r.bytes), (r.left_out || []).map(p => shortName(p) + ': ' + p.cause).join('; ')]));
  drawLoss(all.filter(r => r.loss > 0));
}

function drawLoss(points) {
  const svg = byId('loss'), [width, height] = [900, 260];
  const make = (name, attributes) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  };
  if (points.length < 2) {
    byId('range').textContent = 'the curve begins with the second round';
    return;
  }
  const losses = points.map(p => p.loss), least = Math.min(...losses), most = Math.max(...losses);
  const room = (most - least || 1) * 0.06;
  const y = loss => height - height * (loss - least + room) / (most - least + 2 * room || 1);
  const x = i => width * i / (points.length - 1);
  const lines = [0.25, 0.5, 0.75].map(part => make('line', {class: 'grid', x1: 0, x2: width, y1: height * part, y2: height * part}));
  const path = points.map((p, i) => x(i).toFixed(1) + ',' + y(p.loss).toFixed(1)).join(' ');
  svg.replaceChildren(...lines, make('polyline', {class: 'curve', points: path}));
  byId('first').textContent = 'round ' + points[0].round;
  byId('newest').textContent = 'round ' + points[points.length - 1].round;
  byId('range').textContent = 'highest ' + most.toFixed(3) + ', lowest ' + least.toFixed(3);
  const high = most + room, low = least - room;
  byId('levels').replaceChildren(...[0.25, 0.5, 0.75].map(part => element('span', (high - part * (high - low)).toFixed(2))));
}

function showPeers(reply) {
  const peers = reply ? reply.peers : [];
  byId('more').textContent = reply && reply.more > 0 ? 'and ' + reply.more + ' more' : '';
  fillTable('peers', [['name'], ['id'], ['state'], ['role'], ['last counted', 'n'], ['round trip', 'n'], ['step', 'n'], ['link'],
                      ['address', 'long']],
            peers.map(p => [
              (p.name || '(no link yet)') + (p.self ? ' (this node)' : ''), p.short, [p.state, p.state === 'alive' ? 'good' : 'bad'],
              p.voter ? 'voter' : p.roster ? 'trainer' : 'newcomer', p.included > 0 ? String(p.included) : '-',
              known(p.rtt_ms) ? p.rtt_ms.toFixed(1) + ' ms' : '-', known(p.step_ms) ? span(p.step_ms / 1000) : '-',
              p.self || p.linked ? 'yes' : 'no', (p.addresses || [])[0] || '']));
}

function showTrouble(...sentences) {
  const trouble = byId('trouble');
  trouble.textContent = sentences.filter(Boolean).join(' ');
  trouble.hidden = trouble.textContent === '';
}

// ---- what comes

async function get(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(path + ': ' + answer.status);
  return answer.json();
}

function addRounds(list) {
  for (const round of list) if (!round.exchange) rounds.set(round.round, round);
  while (rounds.size > ROUNDS) rounds.delete(Math.min(...rounds.keys()));
  showRounds();
}

function addEvents(list) {
  const had = new Set(events.map(e => e.id));
  events = [...events, ...list.filter(e => !had.has(e.id))].slice(-EVENTS);
  fillTable('events', [['at'], ['event'], ['text', 'long']], [...events].reverse().map(e => [clock(e.time_ms), e.name, e.text]));
}

// The first news is empty: what came before it is asked for now, what comes later is in the next ones. A round is told
// when it is decided, and its last phase comes later, so the newest are asked for again with the next one.
async function takeNews(event) {
  const news = JSON.parse(event.data), first = lastNews === '';
  lastNews = event.lastEventId;
  try {
    if (first) {
      addEvents(await get('/api/v1/events?last=' + EVENTS));
      addRounds(await get('/api/v1/rounds?last=' + ROUNDS));
    } else if (news.rounds.length > 0) {
      addRounds(await get('/api/v1/rounds?last=' + (news.rounds.length + 2)));
    }
  } catch (error) {
    if (first) lastNews = ''; // The next stream begins anew.
  }
  addEvents(news.events);
  addRounds(news.rounds.filter(r => (rounds.get(r.round) || {}).slot !== r.slot));
}

// The rounds of another run, and of a chain that has gone back (dpnode run fork), take the place of those that are shown.
async function followChain(run) {
  const now = {id: run ? run.id : '', slot: run && known(run.slot) ? run.slot : shown ? shown.slot : 0};
  const anew = shown && (now.id !== shown.id || now.slot < shown.slot);
  shown = now;
  if (!anew) return;
  rounds.clear();
  showRounds();
  try {
    if (run) addRounds(await get('/api/v1/rounds?last=' + ROUNDS));
  } catch (error) {
    shown = {id: '', slot: 0}; // The next state asks again.
  }
}

async function takeTexts() {
  if (Date.now() - textsAsked < TEXTS_MS) return;
  textsAsked = Date.now();
  try {
    const texts = await get('/api/v1/texts');
    byId('written').hidden = texts.length === 0;
    byId('texts').replaceChildren(...texts.reverse().map(text => {
      const made = document.createElement('article');
      made.append(element('h3', 'round ' + text.round + ', ' + clock(text.time_ms)), element('p', printable(text.text)));
      return made;
    }));
  } catch (error) {
    textsAsked = 0;
  }
}

function takeState(state) {
  const pill = byId('state');
  if (state.error) {
    pill.textContent = 'no answer';
    pill.className = 'pill bad';
    showTrouble(state.error.what + (state.error.why ? ' (' + state.error.why + ').' : '.'), state.error.fix ? 'Fix: ' + state.error.fix : '');
    return;
  }
  const status = state.status, run = status.run;
  document.title = (run ? run.name + ' ' : '') + status.state + ' - dpnode';
  pill.textContent = status.state;
  pill.className = 'pill ' + ({training: 'good', waiting: 'warn', gossip: 'warn', paused: 'warn', halted: 'bad', left: 'bad'}[status.state] || '');
  byId('run').textContent = run ? run.name : 'no run';
  byId('node').textContent = status.name + ', dpnode ' + status.version;
  showTrouble(status.lost, status.paused ? 'Paused by its owner' + status.paused.text + '. To train again: dpnode resume' : '',
              run && run.refused ? 'Every address closes the connection: the node there is down behind a proxy, or refuses this one. See: dpnode why' : '', run && run.clock ? run.clock.text : '');
  followChain(run);
  if (!run) {
    byId('cards').replaceChildren();
    showPhases(null);
    showPeers(null);
    return;
  }
  unit = run.external && run.sample_tokens === 1 ? 'samples' : 'tokens'; // as dpnode status says it
  showCards(status, run);
  showPhases(run.trainer_ms);
  showPeers(state.peers);
  takeTexts();
}

function listen() {
  const source = new EventSource('/api/v1/stream' + (lastNews === '' ? '' : '?after=' + lastNews));
  source.addEventListener('state', event => takeState(JSON.parse(event.data)));
  source.addEventListener('news', takeNews);
  source.addEventListener('error', () => {
    byId('state').textContent = 'no answer';
    byId('state').className = 'pill bad';
    showTrouble('dpnode-web does not answer; the page goes on when it does.');
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, RETRY_MS);
  });
}

listen();
