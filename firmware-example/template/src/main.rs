//! A client of smolfed: one task measures, and another communicates and trains.
#![no_std]
#![no_main]

#[path = "board/{{board}}.rs"]
mod board;
mod client;
#[path = "recipe/{{sensor}}-{{arithmetic}}.rs"]
mod recipe;
mod samples;
#[path = "sensor/{{sensor}}.rs"]
mod sensor;

use embassy_executor::Spawner;
use smolfed_memory as _;

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    // If the device may not take part, only the sensor continues. Show this with an LED.
    let Err(_refused) = board::start(spawner).await;
}
